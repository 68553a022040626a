package observe

import "github.com/seed-3ebc6b8a/gatehouse/internal/facts"

// NewView is the world as one call sees it.
func NewView() facts.World { return newView() }

// GitConfig lists the names of the settings in a configuration.
func GitConfig(text string) (names []string, err error) {
	err = parseGitConfig(text, func(section, name, key, _ string) { names = append(names, joinKey(section, name, key)) })
	return names, err
}
