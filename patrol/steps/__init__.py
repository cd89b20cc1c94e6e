"""The steps of a patrol. A step changes a unit of work and reports what it did."""
