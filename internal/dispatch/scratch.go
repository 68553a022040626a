package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// A run has a folder of its own for settings and temporary files. It is not
// below the gate's own folder, which no tool call of a run may reach, but among
// the system's temporary files. Its name says whose it is: that of a run, and
// of a gate by its folder, of which there is one at a time.

// scratch is the folder of a run.
func (s *Service) scratch(jobID string) string {
	return filepath.Join(os.TempDir(), s.scratchPrefix()+jobID)
}

func (s *Service) scratchPrefix() string {
	sum := sha256.Sum256([]byte(s.opts.Dir))
	return "gatehouse-" + hex.EncodeToString(sum[:5]) + "-"
}

// Sweep removes the folders that an earlier run of this gate left because it was
// killed. It is called before the first request, once nothing of the earlier
// jobs runs. What somebody else put there under such a name stays: anybody can
// write among the temporary files.
func (s *Service) Sweep() {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		s.opts.Log.Warn("the files of earlier runs could not be looked for", "error", err)
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), s.scratchPrefix()+"job_") {
			continue
		}
		path := filepath.Join(os.TempDir(), e.Name())
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || !ours(info) {
			s.opts.Log.Warn("something that is not the gate's has the name of a run's files; it is left alone", "path", path)
			continue
		}
		// No link is followed, should one take its place meanwhile: it is removed itself.
		if err := os.RemoveAll(path); err != nil {
			s.opts.Log.Warn("the files of a run could not be removed", "error", err)
		}
	}
}
