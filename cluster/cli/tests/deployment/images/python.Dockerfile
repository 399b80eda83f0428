# Stands in for the image `python`, from Debian's packages, with the modules that the worker needs.
FROM purview-test/packages
