package connect

import (
	"bytes"
	_ "embed"
	"path/filepath"
)

// skill tells an agent how to hand work to others through the gate.
//
//go:embed SKILL.md
var skill []byte

// skillMark is in every file that this package wrote.
const skillMark = "Written by `gatehouse connect`"

// skillFolders are where agents look for skills, below a home or a project.
var skillFolders = map[string]string{
	"claude": ".claude/skills", "codex": ".codex/skills", "gemini": ".gemini/skills", "grok": ".grok/skills", "vibe": ".vibe/skills",
}

// skillFile is the skill of an agent that reads skills. One of that name that
// somebody else wrote is left alone.
func skillFile(agent string, p Place, h *Hook) []edit {
	folder, reads := skillFolders[agent]
	path, err := under(p, folder, folder, "")
	if !reads || err != nil {
		return nil
	}
	return []edit{{path: filepath.Join(path, "secure-orchestration", "SKILL.md"), make: func(old, _ []byte) ([]byte, error) {
		switch own := bytes.Contains(old, []byte(skillMark)); {
		case old != nil && !own:
			return old, nil
		case h == nil:
			return nil, nil
		}
		return skill, nil
	}}}
}
