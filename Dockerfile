# The image of extauthz: one static binary, and the certificates by which it
# trusts others. No shell, no package manager, no root.
#
#   docker build -t sluice .
#   docker buildx build --platform linux/amd64,linux/arm64 -t sluice .
#   docker build --build-arg TARGETARCH=arm64 -t sluice:arm64 .        # the binary alone is for arm64
#
# buildx says TARGETOS, TARGETARCH and TARGETVARIANT by itself; without it they
# are for who builds to say, and unset they are this machine's. Nothing here
# needs BuildKit.
#
# It listens on 9001 (ext_authz, RLS and gRPC health; -p 127.0.0.1:9001:9001),
# on 9002 if told --admin-addr :9002 (health, metrics, profiles: not for
# clients), and on 9003 if told --http-addr :9003 (checks over HTTP). It reads
# its policy from /etc/sluice, follows it, and writes nothing, so that the root
# file system may be read-only. Its health is asked by `extauthz health`.
ARG GO_VERSION=1.26
ARG GO_IMAGE=golang:${GO_VERSION}

FROM ${GO_IMAGE} AS build
WORKDIR /src
# What is downloaded depends on these two files alone.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG TARGETVARIANT
ARG VERSION=dev
ARG REVISION=unknown
# The name of envoyproxy/ratelimit's binary is a link, for deployments that run
# it by that path.
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} GOARM=${TARGETVARIANT#v} \
      go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION} -X main.revision=${REVISION}" \
      -o /image/bin/extauthz ./cmd/extauthz \
 && ln -s extauthz /image/bin/ratelimit \
 && mkdir -p /image/etc/ssl/certs /image/etc/sluice \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && cp LICENSE /image/

FROM scratch
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sluice" \
      org.opencontainers.image.description="A rate limiter for Envoy: ext_authz, RLS and HTTP checks by one policy" \
      org.opencontainers.image.source="https://github.com/sluice-mesh/sluice" \
      org.opencontainers.image.documentation="https://github.com/sluice-mesh/sluice#readme" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /image/ /
USER 65532:65532
EXPOSE 9001 9002 9003
ENTRYPOINT ["/bin/extauthz"]
CMD ["serve", "--policy", "/etc/sluice", "--grpc-addr", ":9001"]
