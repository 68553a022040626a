package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// knowledge reads this user's own files about programs, nil if there are none.
func (a *app) knowledge() (*knowledge.Base, error) {
	p, err := place.Find(a.home)
	if err != nil {
		return nil, err
	}
	return readKnowledge(p.Knowledge())
}

// readKnowledge reads a directory of files about programs and checks their
// examples.
func readKnowledge(dir string) (*knowledge.Base, error) {
	fsys := os.DirFS(dir)
	names, err := fs.Glob(fsys, "*.toml")
	if err != nil || len(names) == 0 {
		return nil, err
	}
	kb, _, err := knowledge.Load(fsys)
	if err != nil {
		return nil, err
	}
	if wrong := shell.CheckExamples(kb); len(wrong) > 0 {
		return nil, errors.New(strings.Join(wrong, "\n"))
	}
	return kb, nil
}

// knowledgeProblems checks the directories among the arguments of lint, or
// this user's own if there are none, and returns the arguments that are left
// with what is wrong.
func (a *app) knowledgeProblems(args []string) (files []string, err error) {
	dirs := []string{}
	for _, arg := range args {
		if info, statErr := os.Stat(arg); statErr == nil && info.IsDir() {
			dirs = append(dirs, arg)
			continue
		}
		files = append(files, arg)
	}
	if len(args) == 0 {
		p, err := place.Find(a.home)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, p.Knowledge())
	}
	var problems []error
	for _, dir := range dirs {
		if _, err := readKnowledge(dir); err != nil {
			problems = append(problems, errors.New(filepath.Clean(dir)+": "+err.Error()))
		}
	}
	return files, errors.Join(problems...)
}
