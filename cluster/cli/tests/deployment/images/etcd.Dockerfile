# Stands in for quay.io/coreos/etcd, from Debian's packages.
FROM purview-test/packages
RUN ln -s /usr/bin/etcd /usr/bin/etcdctl /usr/local/bin/
