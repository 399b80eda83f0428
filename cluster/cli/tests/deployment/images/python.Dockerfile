# Stands in for the image `python`, from Debian's package, with the modules that the worker needs.
FROM purview-test/packages
COPY modules /usr/local/lib/python3.11/dist-packages
