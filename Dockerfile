# docker build -t lightcone .
# docker run -p 127.0.0.1:3000:3000 -v lightcone:/home/spacetime -e LIGHTCONE_PUBLISH_OWNERS=<your identity> lightcone
#
# Nobody may publish until LIGHTCONE_PUBLISH_OWNERS names who may (`spacetime login show` tells your identity), or
# LIGHTCONE_PUBLISH_ALLOWED=anyone, or config.toml. See docs/operations.md.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY crates crates
COPY templates templates
COPY scripts/install.sh scripts/js-engine.sh scripts/lib.sh scripts/v8-library.sh scripts/v8.sha256 scripts/
ARG COMMIT=unknown
# V8 comes as a library that is downloaded here, and must have the checksum of scripts/v8.sha256.
# Where it cannot be had: --build-arg ENGINE=quickjs
ARG ENGINE=v8
# The program of `make install` and of releases.
RUN LIGHTCONE_COMMIT=$COMMIT LIGHTCONE_JS_ENGINE=$ENGINE PREFIX=/installed scripts/install.sh

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 spacetime \
    && mkdir -p /app && chown spacetime /app
COPY --from=build /installed/bin /opt/spacetime
RUN ln -s /opt/spacetime/spacetime /usr/local/bin/spacetime \
    && ln -s /opt/spacetime/spacetimedb-standalone /usr/local/bin/spacetimedb-standalone
USER spacetime
WORKDIR /app
EXPOSE 3000
# The data and the key pair live in the home directory: mount a volume there to keep them.
VOLUME /home/spacetime
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["spacetime", "server", "ping", "http://127.0.0.1:3000"]
# In a container the server must listen on every address to be reached at all, and cannot tell which clients run on this machine.
# So only named identities may publish.
ENV LIGHTCONE_PUBLISH_ALLOWED=owner-list
ENTRYPOINT ["spacetime"]
CMD ["start", "--listen-addr", "0.0.0.0:3000", "--non-interactive"]
