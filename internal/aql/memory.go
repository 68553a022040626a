package aql

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
)

// Memories is the operations on the entries of memories.
type Memories struct {
	Library *library.Library
}

// Operations lists the group.
func (g *Memories) Operations() []Operation {
	return []Operation{
		reversible(Op("addEntry", g.add)),
		Op("clear", g.clear),
	}
}

type entryParams struct {
	Name     string         `json:"name" about:"the memory"`
	Content  string         `json:"content" about:"what to remember"`
	Tags     []string       `json:"tags,omitzero" about:"words to find it by"`
	Metadata map[string]any `json:"metadata,omitzero" about:"further members of the entry"`
}

// Remembered is an entry that was added.
type Remembered struct {
	Memory string `json:"memory"`
	ID     string `json:"id"`
	Count  int    `json:"entries"`
}

func newEntry(content string, tags []string, meta map[string]any) element.Entry {
	return element.Entry{
		ID: "mem_" + rand.Text(), Timestamp: time.Now().UTC().Format(time.RFC3339Nano), Content: content, Tags: tags, Metadata: meta,
	}
}

// memory reads a memory. Its type need not be said.
func (g *Memories) memory(j *Job, name string) (*library.File, error) {
	if j.ElementType != "" && j.ElementType != "memory" {
		return nil, refused("%s works on memories, not on elements of type %s", j.Operation, j.ElementType)
	}
	f, err := g.Library.Get("memory", name)
	if err == nil && f.Doc == nil {
		err = refused("%s cannot be read: %s", f.Path, f.Broken)
	}
	return f, err
}

func (g *Memories) add(ctx context.Context, j *Job, p entryParams) (any, error) {
	for range 10 {
		out, err := g.addOnce(ctx, j, p)
		if !errors.Is(err, library.ErrChanged) {
			return out, err
		}
	}
	return nil, refused("the memory changes all the time; nothing was added, you may try again")
}

func (g *Memories) addOnce(ctx context.Context, j *Job, p entryParams) (any, error) {
	f, err := g.memory(j, p.Name)
	if err != nil {
		return nil, err
	}
	e := newEntry(p.Content, p.Tags, p.Metadata)
	doc, err := f.Doc.AddEntry(e)
	if err != nil {
		return nil, refused("%v", err)
	}
	if q := doc.Element().Quarantine; q != "" && q != f.Doc.Element().Quarantine {
		return nil, refused("the entry is refused: %s", q)
	}
	if err := j.Trail.Writing(ctx, f.Path, doc); err != nil {
		return nil, err
	}
	if err := g.Library.Replace(f, doc); err != nil {
		return nil, err
	}
	entries, err := doc.Entries()
	return Remembered{Memory: f.Name, ID: e.ID, Count: len(entries)}, err
}

// Cleared is a memory whose entries are gone.
type Cleared struct {
	Memory  string `json:"memory"`
	Removed int    `json:"removed"`
}

func (g *Memories) clear(_ context.Context, j *Job, p nameParams) (any, error) {
	f, err := g.memory(j, p.Name)
	if err != nil {
		return nil, err
	}
	if !j.Approved || f.Digest != j.Decision.World {
		return nil, refused("the memory changed while the call was decided, or nobody approved it; nothing was done")
	}
	doc, n, err := f.Doc.Cleared()
	if err != nil {
		return nil, err
	}
	return Cleared{Memory: f.Name, Removed: n}, g.Library.Replace(f, doc)
}
