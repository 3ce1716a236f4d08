# The tags leave out a part of the CLI library that costs every start 0.8 ms.
TAGS    := urfave_cli_no_docs
PROGRAMS := $(notdir $(wildcard cmd/*))

.PHONY: build test demo bench codes clean

build: ## the programs, static and stripped, into bin/
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -tags $(TAGS) -ldflags '-s -w' -o bin/ $(addprefix ./cmd/,$(PROGRAMS))

test: ## every test; what needs root or a missing tool is skipped and says so
	go test -tags $(TAGS) ./...

demo: build ## the main job, shown
	@PATH="$(CURDIR)/bin:$$PATH" sh examples/first-lease.sh

bench: build ## ratios against peers measured in the same run
	go run ./internal/bench

codes: ## docs/codes.md from the code
	go test -run TestCodesDocument -update .

clean:
	rm -rf bin
