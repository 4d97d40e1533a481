# What a developer runs. `make` alone lists it.

STORE ?= memory
FUZZ_TIME ?= 10s
SOAK_TIME ?= 1h

.PHONY: help demo test test-kube chart-docs test-long fuzz soak bench bench-short bench-scale e2e-compose lint fmt build tools

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST)

demo: build ## a real Envoy asking extauthz, on this machine; STORE=redis keeps the buckets in Redis
	@go build -o bin/demo ./test/demo
	@hack/demo $(STORE)

test: ## every test: unit, race, stores on real servers, end to end; CI=1 fails what would be skipped
	@hack/test

test-kube: ## the chart: lint, unit tests, schemas, and a real Kubernetes that it is installed into
	@hack/test-kube

chart-docs: ## helm/sluice/README.md, from the comments in its values
	@$$(hack/tool helm-docs) --chart-search-root helm/sluice --sort-values-order file --log-level warning

test-long: ## ten million decisions against the oracle, a million on Redis and on Valkey, memory at a million keys
	@hack/test-long

fuzz: ## every fuzz target for FUZZ_TIME (10s) each, or those of FUZZ="FuzzCheck FuzzLoad"
	@hack/fuzz $(FUZZ_TIME) $(FUZZ)

bench: ## how fast it is, as shares of a bare gRPC server, into docs/performance.md
	@go run ./bench -redis "$$(command -v redis-server)" -write docs/performance.md

bench-short: ## a slice of that in half a minute, to see that it runs
	@go run ./bench -redis "$$(command -v redis-server)" -rounds 1 -time 200ms -loaded 100000

bench-scale: ## docs/scale.md: a simulated fleet at a million requests a second, with costs that SCALE="-measure bench/scale/measured.json" measures
	@go run ./bench/scale $(or $(SCALE),-seed 1 -write docs/scale.md)

e2e-compose: ## docker-compose.yml on a Docker engine, its own where none runs (root): limits through two replicas, and what fails
	@hack/compose

soak: ## half load for SOAK_TIME (1h): memory and goroutines flat, no errors; SOAK="-write docs/reliability.md" keeps its summary
	@go run ./test/soak -time $(SOAK_TIME) $(SOAK)

lint: ## formatting, go vet, and the linters of .golangci.yml
	@hack/lint

fmt: ## write every Go file as gofumpt would
	@$$(hack/tool gofumpt) -w .

build: ## bin/extauthz, static
	@[ -e bin/extauthz ] || echo "compiling: minutes the first time" >&2
	@CGO_ENABLED=0 go build -o bin/extauthz ./cmd/extauthz

tools: ## linters, Envoy and Valkey into .tools/, at the versions of hack/tools.env
	@hack/tool golangci-lint gofumpt envoy valkey
