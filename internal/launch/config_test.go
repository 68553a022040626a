package launch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
)

func sample() *launch.Config {
	return &launch.Config{
		Path: "/bin/true", Argv: []string{"true", ""}, Env: []string{"A=b"}, Dir: "/", Umask: 18, Filter: []byte{1, 2, 3}, Notify: true,
		HandledFS: 1 << 40, HandledNet: 2, Scoped: 3, Rules: []launch.Rule{{Path: "/x", Access: 7}}, Limits: []launch.Limit{{Resource: 1, Value: 1 << 50}},
		Listen: 3128, Socket: "/run/s", TTY: true, Namespaces: []uint64{4, 5}, Quiet: true, Want: 9,
	}
}

func TestConfigSurvivesTheWire(t *testing.T) {
	got, err := launch.Decode(sample().Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Error(diff)
	}
}

func TestDamagedConfigIsRefused(t *testing.T) {
	raw := sample().Encode()
	for n := range raw {
		if _, err := launch.Decode(raw[:n]); err == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(raw))
		}
	}
	if _, err := launch.Decode(append(raw, 0)); err == nil {
		t.Error("trailing bytes were accepted")
	}
	if _, err := launch.Decode((&launch.Config{}).Encode()); err == nil {
		t.Error("an empty configuration was accepted")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sample().Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := launch.Decode(b); err == nil && (c.Path == "" || len(c.Argv) == 0) {
			t.Error("nothing to run")
		}
	})
}
