"""Language models, by the two protocols that nearly all of them speak (spec P6, P8). `opening` is the way in.

Both SDKs take long to import: that happens in a thread, when a model is first asked.
"""
