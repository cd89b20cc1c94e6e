"""One step of the patrol a file, named by its verb. A step changes the night's working copy and reports what it did."""
