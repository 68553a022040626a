# Short names for people who expect make. Everything works without it.

.PHONY: bench build test up

# Start the gate on its embedded default.
up:
	go run ./cmd/gatehouse up

# Every check there is; the same as CI runs.
test:
	go run ./test/all

# Each promised figure, with its ratio to a baseline in the same run.
bench:
	go run ./bench

# The commands, into bin.
build:
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...
