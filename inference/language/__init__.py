"""Language models, by the two protocols that nearly all of them speak (spec P6, P8); see `structured_model`.

Both SDKs take long to import: that happens in a thread, when a model is first asked.
"""
