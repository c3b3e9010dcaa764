# docker build -t lightcone . && docker run -p 3000:3000 -v lightcone:/home/spacetime lightcone

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY crates crates
COPY templates templates
ARG COMMIT=unknown
# V8 comes as a library that the build downloads. Where it cannot: --build-arg FEATURES=lightcone-cli/quickjs
ARG FEATURES=lightcone-cli/v8
ENV LIGHTCONE_COMMIT=$COMMIT CARGO_TARGET_DIR=/build
RUN cargo build --release --locked --package lightcone-cli --features "$FEATURES"

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 spacetime \
    && mkdir -p /app && chown spacetime /app
COPY --from=build /build/release/spacetime /build/release/spacetimedb-standalone /opt/spacetime/
RUN ln -s /opt/spacetime/spacetime /usr/local/bin/spacetime \
    && ln -s /opt/spacetime/spacetimedb-standalone /usr/local/bin/spacetimedb-standalone
USER spacetime
WORKDIR /app
EXPOSE 3000
# The data and the key pair live in the home directory: mount a volume there to keep them.
VOLUME /home/spacetime
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["spacetime", "server", "ping", "http://127.0.0.1:3000"]
# Inside of a container the port is reachable only if it is published, so the server may listen on every address there.
ENTRYPOINT ["spacetime"]
CMD ["start", "--listen-addr", "0.0.0.0:3000", "--non-interactive"]
