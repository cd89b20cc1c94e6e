# Serves the memory in the volume /data over HTTP on port 8765. docs/installation.md says how to use it.
FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY . .
# The lock file's hashes hold for every package; hatch_build.py fetches the embedding model, by its hashes as well.
RUN python -m venv /opt/madeleine \
    && /opt/madeleine/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements/runtime.txt \
    && /opt/madeleine/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="Madeleine" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/madeleine-memory/madeleine"
RUN install --directory --owner=10001 --group=10001 --mode=700 /data
COPY --from=build /opt/madeleine /opt/madeleine
USER 10001:10001
# As clients on the machine of the container write its address; tokens are made for it. Other names: docs/http.md.
ENV PATH="/opt/madeleine/bin:$PATH" \
    MADELEINE_DATA_DIR="/data" \
    MADELEINE_PUBLIC_URL="http://127.0.0.1:8765/mcp" \
    MADELEINE_ALLOWED_HOSTS="127.0.0.1:*,localhost:*"
VOLUME ["/data"]
EXPOSE 8765
HEALTHCHECK --start-period=30s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8765/health', timeout=2)"]
ENTRYPOINT ["madeleine"]
CMD ["serve", "--http", "--host", "0.0.0.0"]
