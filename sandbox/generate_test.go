package sandbox_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// The command lines and profiles of back-ends that cannot run everywhere are
// pure text, and are looked at everywhere.

func wantAll(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in\n%s", p, text)
		}
	}
}

func TestContainerArguments(t *testing.T) {
	podman := strings.Join(sandbox.SampleContainerArgs(sandbox.Podman, "img"), "\n")
	wantAll(t, podman, "--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", "--user=7:8", "--userns=keep-id",
		"--memory=1073741824", "--pids-limit=99", "--pull=never", "source=/r,target=/r,readonly", "type=bind,source=/w,target=/w\n",
		"source=/w/.git/hooks,target=/w/.git/hooks,readonly", "type=bind,source=/w/.git,target=/w/.git\n", `"source=/odd,""name","target=/odd,""name"`)
	if strings.Contains(podman, "/w/link") {
		t.Error("a link was mounted over")
	}
	if !strings.HasSuffix(podman, "\nimg") {
		t.Error("the image is not last")
	}
	docker := strings.Join(sandbox.SampleContainerArgs(sandbox.Docker, "img"), "\n")
	if strings.Contains(docker, "--pid=private") || strings.Contains(docker, "keep-id") {
		t.Errorf("an option docker does not know in\n%s", docker)
	}
	wantAll(t, docker, "--network=none", "--cap-drop=ALL", "--cgroupns=private")
}

func TestSeatbeltProfile(t *testing.T) {
	text := sandbox.SampleSeatbeltProfile(0)
	wantAll(t, text, "(deny default)", `(allow file-read* (subpath "/r"))`, `(allow file-write* (subpath "/w"))`,
		`(allow file-write* (literal "/odd,\"name"))`, `(deny file-write* (regex #"(?i)^/w/(.*/)?\.git/hooks(/.*)?$"))`,
		`(deny file-write* (subpath "/gate"))`, `(deny file-write-unlink (literal "/w/.git"))`)
	if strings.Contains(text, "network") || strings.Contains(text, `(allow file-write* (subpath "/r"))`) {
		t.Error(text)
	}
	if strings.Index(text, "(deny file-write* (regex") < strings.LastIndex(text, "(allow file-write*") {
		t.Error("a later allow undoes a deny")
	}
	wantAll(t, sandbox.SampleSeatbeltProfile(3128), `(allow network-outbound (remote ip "localhost:3128"))`)
}
