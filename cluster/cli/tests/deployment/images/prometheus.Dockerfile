# Stands in for the image `prom/prometheus`, from Debian's package.
FROM purview-test/packages
RUN install -d -o nobody -g nogroup /prometheus
USER nobody
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
