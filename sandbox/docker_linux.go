package sandbox

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bareRoot is the host's root for an engine that takes images only: an image of
// nothing but empty directories and the host's own links between them, over
// which what a dynamic program needs is mounted. It is named after what is in it
// and made once.
func bareRoot(program string, runtime []string) (containerRoot, error) {
	from := containerRoot{}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, dir := range []string{"dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "usr", "var", "var/tmp"} {
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755})
	}
	for _, path := range runtime {
		target, err := os.Readlink(path)
		if err != nil || filepath.Dir(path) != "/" {
			from.mounts = append(from.mounts, path)
			continue
		}
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: strings.TrimPrefix(path, "/"), Linkname: target, Mode: 0o777})
	}
	if err := w.Close(); err != nil { // also for what was written before
		return from, err
	}
	from.image = fmt.Sprintf("gatehouse-bare:%x", sha256.Sum256(content.Bytes()))
	engine := func(stdin []byte, args ...string) ([]byte, error) {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env, cmd.Stdin = "/", userEnv(), bytes.NewReader(stdin)
		return cmd.CombinedOutput()
	}
	if _, err := engine(nil, "image", "inspect", from.image); err == nil {
		return from, nil
	}
	if out, err := engine(content.Bytes(), "import", "-", from.image); err != nil {
		return from, fmt.Errorf("%s: %w", firstLine(strings.TrimSpace(string(out))), err)
	}
	return from, nil
}
