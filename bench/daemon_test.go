package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// standIn answers as the daemon does, or ends at once when told to.
const standIn = `package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
)

func main() {
	if os.Args[1] != "up" || os.Args[2] != "--data" || os.Args[4] != "--listen" {
		panic("usage")
	}
	if _, err := os.Stat(os.Args[3]); err != nil {
		println("no data directory")
		os.Exit(3)
	}
	l, err := net.Listen("unix", filepath.Join(os.Args[3], "gatehouse.sock"))
	if err != nil {
		panic(err)
	}
	http.HandleFunc("GET /v1/health", func(http.ResponseWriter, *http.Request) {})
	panic(http.Serve(l, nil))
}
`

// TestStartDaemon measures a stand-in, so that the measurement itself is known
// to work: it sees the first answer, and it says why there was none.
func TestStartDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, program, data := filepath.Join(dir, "main.go"), filepath.Join(dir, "stand-in"), filepath.Join(dir, "data")
	if err := os.WriteFile(source, []byte(standIn), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := goBuild(t.Context(), program, source); err != nil {
		t.Fatal(err)
	}
	if _, _, err := startDaemon(t.Context(), program, data, false); err == nil || !strings.Contains(err.Error(), "no data directory") {
		t.Errorf("a daemon that ends at once: %v", err)
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	took, _, err := startDaemon(t.Context(), program, data, false)
	if err != nil || took <= 0 {
		t.Errorf("took %v, error %v", took, err)
	}
	if _, err := os.Stat("/proc/self/status"); err == nil && residentMiB(os.Getpid()) <= 0 {
		t.Error("the resident memory of this process is not found")
	}
}
