# make demo   builds everything, runs transfers for ten seconds, and prints what came of it; MODULE=ts (or ts-npm, rust)
# make test   runs every test

.PHONY: demo test simulate install modules fmt fuzz audit site help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo:
	@scripts/demo.sh --module $(or $(MODULE),ts)

test:
	@scripts/test.sh

# make simulate   runs databases in a simulated world for SECONDS (60 if not set), from SEED on; a seed that fails is named
simulate:
	@SIMULATE_SECONDS=$(or $(SECONDS),60) SIMULATE_SEED=$(or $(SEED),0) \
		CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
		cargo test -q --release -p lightcone-database --test simulation what_was_acknowledged_is -- --nocapture

# make install   builds the programs and puts them into ~/.local/bin; PREFIX=/usr/local for everybody
install:
	@scripts/install.sh

# make modules   builds the Rust modules that tests and the demo run
modules:
	@scripts/modules.sh

# make fmt   formats all Rust sources
fmt:
	@scripts/fmt.sh

# make fuzz   runs every fuzz target, FUZZ_SECONDS each (60 if not set)
fuzz:
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-60} scripts/fuzz.sh

# make audit   asks for known vulnerabilities of all dependencies; needs a network
audit:
	@scripts/audit.sh

# make site   makes a static site of the pages, with search, in site/dist
site:
	@scripts/site.sh
