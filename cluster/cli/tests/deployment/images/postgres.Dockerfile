# Stands in for the image `postgres`, from Debian's packages: the same user, variables and entry point, as far as they
# are used.
FROM purview-test/packages
RUN usermod -u 999 postgres && groupmod -g 999 postgres && install -d -o 999 -g 999 -m 3777 /var/run/postgresql
ENV PATH=/usr/lib/postgresql/15/bin:$PATH
COPY postgres-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
RUN chmod 755 /usr/local/bin/docker-entrypoint.sh
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
