# Stands in for the image `haproxy`, from Debian's package.
FROM purview-test/packages
USER haproxy
STOPSIGNAL SIGUSR1
ENTRYPOINT ["/usr/sbin/haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
