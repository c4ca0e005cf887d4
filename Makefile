# The commands of this repository. `make` lists them.

SWIFT ?= swift
PREFIX ?= /usr/local
DESTDIR ?=
SYSCONFDIR ?= /etc
INPUTS ?= 1000000
SEED ?= 1
NIGHTS ?= 1000
SAMPLE ?= 0
SEEDS ?= 100
WORLDS ?= 60
BASELINE ?=

# Links Swift's runtime statically, because the program runs on hosts without Swift.
RELEASE = $(SWIFT) build -c release --static-swift-stdlib

# Tests of test-real-parts, which test leaves out.
REAL_PARTS = LibreOffice|Recalculation|RealParts

# Half of the tests by time, for the first of two processes: the end-to-end tests without some that need no sample shop.
FIRST_HALF = ^EndToEndTests\.(?!(CriticalEvidence|FactsAfterAsOf|Lookback|OpenAccusation|ProofWorld|RepeatedRefusal|ServerAPINight|Sweep)Tests)

.DEFAULT_GOAL := help
.PHONY: help demo test test-real-parts test-package fuzz torture torture-proof mutation evaluate compare build install install-files deb sbom lint bench clean

help:
	@echo 'make demo      two nights of a sample shop: installs what is missing, builds, runs, shows the reports;'
	@echo '               with KEEP=1 the shop goes on running, to try commands on'
	@echo 'make test      installs what is missing, builds and runs all tests but those of test-real-parts'
	@echo 'make test-real-parts   what needs LibreOffice, a browser, Spark or other builds of a library; installs them'
	@echo 'make test-package      the Debian package: lintian, then installed, upgraded and purged on a bare Debian 12; its image'
	@echo 'make fuzz      INPUTS=1000000 mutated inputs, drawn from SEED=1, into every decoder of what others send'
	@echo 'make torture   NIGHTS=1000 nights at least of each kind of trouble, and hostile bytes, drawn from SEED=1 (hours)'
	@echo 'make torture-proof   puts known faults back, one by one, to see that the harness finds them'
	@echo 'make mutation  SAMPLE=300 of the mutants of the core, or all of them; prints those that no test notices'
	@echo 'make evaluate  SEEDS=100 shops with known truth, and 40 slips of a mapping: precision, recall, held nights'
	@echo 'make compare   BASELINE=folder of an earlier build: every report of WORLDS=60 shops must be the same, byte for byte'
	@echo 'make build     release build; the programs are in .build/release'
	@echo 'make install   after make build: program, man pages, completions, documentation, cron examples, below PREFIX=$(PREFIX)'
	@echo 'make deb       Debian package in .build/deb'
	@echo 'make sbom      night-audit.cdx.json: what the program is made of (CycloneDX); needs no build'
	@echo 'make lint      swift format, strictly'
	@echo 'make bench     benchmarks'
	@echo 'make clean     removes what was built here'

demo:
	@echo 'Three steps: what is missing is installed (a minute), the program is built (a first build takes 6 to 10 minutes, later'
	@echo 'ones seconds), and two nights of a sample shop are audited (half a minute).'
	@Tests/Demo/requirements.sh demo
	@Tests/Demo/build.sh $(RELEASE)
	@KEEP='$(KEEP)' Tests/Demo/demo.sh "$$($(RELEASE) --show-bin-path)" reports

# Without backtraces, because Swift's backtracer can hang for minutes after a crash in a test. One test at a time in
# each of two processes, because Foundation's Process leaks the socket of a child into children that start at the same
# moment, which then keep it open.
test: export SWIFT_BACKTRACE = enable=no
test:
	@Tests/Demo/requirements.sh test
	$(SWIFT) build --build-tests
	@Tests/Demo/test.sh --beside '$(FIRST_HALF)' $(SWIFT) --skip '$(REAL_PARTS)'

# Tests with LibreOffice, another libxlsxwriter, other servers, and a browser.
test-real-parts: export SWIFT_BACKTRACE = enable=no
test-real-parts:
	@Tests/Demo/requirements.sh real-parts
	Tests/RealParts/libxlsxwriter.sh
	$(SWIFT) build --build-tests
	Tests/RealParts/postgres.sh '$(SWIFT)'
	Tests/RealParts/host.sh "$$($(SWIFT) build --show-bin-path)/night-audit"
	Tests/RealParts/spark.sh "$$($(SWIFT) build --show-bin-path)"
	Tests/RealParts/citus.sh "$$($(SWIFT) build --show-bin-path)"
	.build/test-tools/bin/hadolint cron/Dockerfile
	@$(MAKE) --no-print-directory sbom
	.build/test-tools/bin/python3 Tests/RealParts/sbom.py night-audit.cdx.json
	promtool check rules cron/night-audit-alerts.yaml
	@Tests/Demo/test.sh $(SWIFT) --filter '$(REAL_PARTS)'

# Makes a release build, and tests its Debian package on a bare Debian 12 and in a container image.
test-package: deb
	@Tests/Demo/requirements.sh package
	Tests/RealParts/package.sh .build/deb/night-audit_*.deb
	Tests/RealParts/image.sh .build/deb/night-audit_*.deb

# Measures the accuracy over seeded shops, and writes the tables of the page Evaluation.
evaluate:
	@Tests/Demo/requirements.sh test
	@Tests/Demo/build.sh $(RELEASE)
	Tests/Evaluation/evaluate.py --seeds $(SEEDS) --page Sources/night-audit/Documentation.docc/Evaluation.md "$$($(RELEASE) --show-bin-path)"

# Compares this build with an earlier one. The core is changed only with this.
compare:
	@Tests/Demo/requirements.sh test
	@Tests/Demo/build.sh $(RELEASE)
	Tests/Comparison/compare.py --worlds $(WORLDS) '$(BASELINE)' "$$($(RELEASE) --show-bin-path)"

# Builds an executable that no other target builds. Tests/Fuzz/README.md describes its use with LLVM's libFuzzer.
fuzz: export DEVELOPER_TOOLS = 1
fuzz: export SWIFT_BACKTRACE = enable=no
fuzz:
	@Tests/Demo/requirements.sh build
	$(SWIFT) build --product fuzz
	"$$($(SWIFT) build --show-bin-path)/fuzz" --inputs $(INPUTS) --seed $(SEED)

# Runs for hours the tests of which `make test` runs a small part.
torture:
	@Tests/Demo/requirements.sh test
	$(SWIFT) build --build-tests
	Tests/Torture/torture.sh '$(SWIFT)' $(NIGHTS) $(SEED)

# Changes files below Sources one at a time, and restores them.
torture-proof:
	@Tests/Demo/requirements.sh test
	Tests/Torture/known_faults.py --swift '$(SWIFT)'

# Makes small changes to the core, each of which a test should detect. SAMPLE=n makes n of them, 0 all.
mutation:
	@Tests/Demo/requirements.sh build
	Tests/Mutation/mutation.py --swift '$(SWIFT)' --sample $(SAMPLE) --seed $(SEED)

build:
	@Tests/Demo/requirements.sh build
	$(RELEASE)

# Does not need Swift, so that root can install a build of another user.
install: PROGRAM = .build/release/night-audit
install: install-files

# Installs PROGRAM with its files. Files that name the program name it below PREFIX.
install-files:
	install -D -m 0755 '$(PROGRAM)' '$(DESTDIR)$(PREFIX)/bin/night-audit'
	strip --strip-unneeded '$(DESTDIR)$(PREFIX)/bin/night-audit'
	cron/debian/manual.py '$(PROGRAM)' '$(DESTDIR)$(PREFIX)/share/man' Sources/night-audit/Documentation.docc/Configuration.md
	cron/documents.sh '$(DESTDIR)$(PREFIX)/share/doc/night-audit'
	install -d '$(DESTDIR)$(PREFIX)/share/bash-completion/completions' '$(DESTDIR)$(PREFIX)/share/zsh/site-functions' \
	  '$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d'
	'$(PROGRAM)' --generate-completion-script bash > '$(DESTDIR)$(PREFIX)/share/bash-completion/completions/night-audit'
	'$(PROGRAM)' --generate-completion-script zsh > '$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_night-audit'
	'$(PROGRAM)' --generate-completion-script fish > '$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/night-audit.fish'
	install -d '$(DESTDIR)$(PREFIX)/share/night-audit/schemas'
	install -m 0644 Sources/night-audit/Documentation.docc/Schemas/*.json '$(DESTDIR)$(PREFIX)/share/night-audit/schemas'
	install -D -m 0755 cron/night-audit-chat '$(DESTDIR)$(PREFIX)/lib/night-audit/night-audit-chat'
	for file in cron/night-audit[.-]*[a-z] cron/bi-queries.sql cron/Dockerfile; do \
	  [ "$$file" = cron/night-audit-chat ] || \
	  sed 's|/usr/local/bin|$(PREFIX)/bin|g; s|/usr/lib/night-audit|$(PREFIX)/lib/night-audit|g' "$$file" | \
	    install -m 0644 /dev/stdin '$(DESTDIR)$(PREFIX)/share/night-audit/'"$${file#cron/}" || exit 1; \
	done
	test -e '$(DESTDIR)$(SYSCONFDIR)/night-audit/night-audit.yaml' || install -D -m 0640 \
	  '$(DESTDIR)$(PREFIX)/share/night-audit/night-audit.yaml' '$(DESTDIR)$(SYSCONFDIR)/night-audit/night-audit.yaml'

# Packages the newest build for Debian below .build/deb.
deb: build
	@Tests/Demo/requirements.sh deb
	cron/debian/build.sh "$$($(RELEASE) --show-bin-path)/night-audit" .build/deb

# Writes the software bill of materials (CycloneDX): the Swift packages, and the system's libraries.
sbom:
	@python3 cron/sbom.py > .build-sbom.json && mv .build-sbom.json night-audit.cdx.json && echo night-audit.cdx.json

lint:
	$(SWIFT) format lint --strict -r Sources Tests Package.swift

bench:
	$(MAKE) -C Tests/Benchmarks bench

clean:
	rm -rf .build reports/sample-60-days
