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

# The commands, into bin. The second stage of a sandbox starts without the Go
# runtime where there is an entry for that (internal/launch).
build:
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...
	[ "$$(go env GOOS)/$$(go env GOARCH)" != linux/amd64 ] || CGO_ENABLED=0 go build -trimpath -o bin/ \
		-ldflags '-s -w -E=github.com/seed-3ebc6b8a/gatehouse/internal/launch.entry' ./cmd/gatehouse-launch
