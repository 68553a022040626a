package sandbox

import (
	"strings"
	"testing"
)

// The command lines and profiles of back-ends that cannot run everywhere are
// pure text, and are looked at everywhere. This file is inside the package
// because a plan has no exported form.

func samplePlan(image string) *plan {
	s := &Spec{Command: []string{"tool"}, Image: image}
	return &plan{
		spec: s, limits: Limits{Memory: 1 << 30, Processes: 99, OpenFiles: 64, TempSize: 1 << 20}, dir: "/w", home: "/home/u", path: "/usr/bin/tool",
		roots:  []root{{path: "/r", dir: true}, {path: "/w", write: true, dir: true}, {path: `/odd,"name`, write: true}},
		pins:   []string{"/w/.git"},
		sealed: []finding{{path: "/w/.git/hooks"}, {path: "/w/link", link: "x"}},
		guard:  &guard{suffixes: [][]string{{".git", "hooks"}}, paths: []string{"/gate"}},
	}
}

func wantAll(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in\n%s", p, text)
		}
	}
}

func TestContainerArguments(t *testing.T) {
	podman := strings.Join(containerArgs(Podman, samplePlan("img"), 7, 8, "/stage"), "\n")
	wantAll(t, podman, "--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", "--user=7:8", "--userns=keep-id",
		"--memory=1073741824", "--pids-limit=99", "--pull=never", "source=/r,target=/r,readonly", "type=bind,source=/w,target=/w\n",
		"source=/w/.git/hooks,target=/w/.git/hooks,readonly", "type=bind,source=/w/.git,target=/w/.git\n", `"source=/odd,""name","target=/odd,""name"`)
	if strings.Contains(podman, "/w/link") {
		t.Error("a link was mounted over")
	}
	if !strings.HasSuffix(podman, "\nimg") {
		t.Error("the image is not last")
	}
	host := containerArgs(Podman, samplePlan(""), 7, 8, "/stage")
	if got := strings.Join(host[len(host)-2:], " "); got != "--rootfs /:O" {
		t.Errorf("%q", got)
	}
	docker := strings.Join(containerArgs(Docker, samplePlan("img"), 7, 8, "/stage"), "\n")
	if strings.Contains(docker, "--pid=private") || strings.Contains(docker, "keep-id") {
		t.Errorf("an option docker does not know in\n%s", docker)
	}
	wantAll(t, docker, "--network=none", "--cap-drop=ALL", "--cgroupns=private")
}

func TestSeatbeltProfile(t *testing.T) {
	p := samplePlan("")
	text := seatbeltProfile(p, "/private/tmp/x")
	wantAll(t, text, "(deny default)", `(allow file-read* (subpath "/r"))`, `(allow file-write* (subpath "/w"))`,
		`(allow file-write* (literal "/odd,\"name"))`, `(deny file-write* (regex #"(?i)^/w/(.*/)?\.git/hooks(/.*)?$"))`,
		`(deny file-write* (subpath "/gate"))`, `(deny file-write-unlink (literal "/w/.git"))`)
	if strings.Contains(text, "network") || strings.Contains(text, `(allow file-write* (subpath "/r"))`) {
		t.Error(text)
	}
	if strings.Index(text, "(deny file-write* (regex") < strings.LastIndex(text, "(allow file-write*") {
		t.Error("a later allow undoes a deny")
	}
	p.port = 3128
	wantAll(t, seatbeltProfile(p, "/t"), `(allow network-outbound (remote ip "localhost:3128"))`)
}
