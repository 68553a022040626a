package aql

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
)

// Elements is the operations on elements' files.
type Elements struct {
	Library *library.Library
	Keeper  *activation.Keeper
}

// Operations lists the group.
func (g *Elements) Operations() []Operation {
	return []Operation{
		Op("list_elements", g.list),
		Op("search_elements", g.search),
		Op("get_element", g.get),
		Op("export_element", g.export),
		Op("validate_element", g.validate),
		reversible(Op("create_element", g.create)),
		reversible(Op("import_element", g.importText)),
		reversible(Op("edit_element", g.edit)),
		Op("delete_element", g.remove),
	}
}

// Summary is an element as lists show it.
type Summary struct {
	Type        string   `json:"type"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitzero"`
	Version     string   `json:"version,omitzero"`
	Author      string   `json:"author,omitzero"`
	Tags        []string `json:"tags,omitzero"`
	Modified    string   `json:"modified,omitzero"`
	// Policy says that it carries one, Active that it is in force for the
	// caller, Quarantine why its policy does not load.
	Policy     bool   `json:"policy"`
	Active     bool   `json:"active"`
	Quarantine string `json:"quarantine,omitzero"`
}

// Page is a part of a list.
type Page struct {
	Elements []Summary `json:"elements"`
	Total    int       `json:"total"`
	Page     int       `json:"page"`
	Pages    int       `json:"pages"`
}

type listParams struct {
	Tag      string `json:"tag,omitzero" about:"only elements with this tag"`
	Author   string `json:"author,omitzero" about:"only elements of this author"`
	Policy   *bool  `json:"policy,omitzero" about:"only elements that carry a policy, or that do not"`
	Active   *bool  `json:"active,omitzero" about:"only elements that are active for you, or that are not"`
	Sort     string `json:"sort,omitzero" about:"name or modified; name if left out"`
	Page     int    `json:"page,omitzero" about:"from 1"`
	PageSize int    `json:"page_size,omitzero" about:"up to 100; 25 if left out"`
}

type searchParams struct {
	Query string `json:"query" about:"words; all of them must be in the name, description, tags or text"`
	listParams
}

func (g *Elements) list(ctx context.Context, j *Job, p listParams) (any, error) {
	return g.page(ctx, j, &p, nil)
}

func (g *Elements) search(ctx context.Context, j *Job, p searchParams) (any, error) {
	words := strings.Fields(strings.ToLower(p.Query))
	if len(words) == 0 {
		return nil, refused("query holds no word")
	}
	return g.page(ctx, j, &p.listParams, func(f *library.File) bool {
		text := f.Name
		if f.Doc != nil {
			text += "\n" + f.Doc.Field("description") + "\n" + f.Doc.Field("instructions") + "\n" + strings.Join(f.Doc.Tags(), " ") + "\n" + f.Doc.Body
		}
		text = strings.ToLower(text)
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
}

// page lists the elements that a filter keeps.
func (g *Elements) page(ctx context.Context, j *Job, p *listParams, keep func(*library.File) bool) (any, error) {
	if err := knownType(j.ElementType, true); err != nil {
		return nil, err
	}
	if p.Sort != "" && p.Sort != "name" && p.Sort != "modified" {
		return nil, unknown("order", p.Sort, []string{"name", "modified"})
	}
	files, err := g.Library.List(j.ElementType)
	if err != nil {
		return nil, err
	}
	active, err := g.activeIDs(ctx, j)
	if err != nil {
		return nil, err
	}
	var all []Summary
	for _, f := range files {
		s := summarise(f)
		s.Active = active[f.ID()]
		if p.fits(&s) && (keep == nil || keep(f)) {
			all = append(all, s)
		}
	}
	if p.Sort == "modified" {
		slices.SortStableFunc(all, func(a, b Summary) int { return strings.Compare(b.Modified, a.Modified) })
	}
	size := p.PageSize
	if size <= 0 || size > 100 {
		size = 25
	}
	out := Page{Total: len(all), Page: max(1, p.Page), Pages: (len(all) + size - 1) / size, Elements: []Summary{}}
	if from := (out.Page - 1) * size; from < len(all) {
		out.Elements = all[from:min(from+size, len(all))]
	}
	return out, nil
}

func (p *listParams) fits(s *Summary) bool {
	return (p.Tag == "" || slices.Contains(s.Tags, p.Tag)) && (p.Author == "" || s.Author == p.Author) &&
		(p.Policy == nil || *p.Policy == s.Policy) && (p.Active == nil || *p.Active == s.Active)
}

func summarise(f *library.File) Summary {
	s := Summary{Type: f.Type, Name: f.Name, Quarantine: f.Broken}
	if f.Doc == nil {
		return s
	}
	e := f.Doc.Element()
	s.Description, s.Version, s.Author = f.Doc.Field("description"), f.Doc.Field("version"), f.Doc.Field("author")
	s.Tags, s.Modified, s.Quarantine = f.Doc.Tags(), f.Doc.Field("modified"), e.Quarantine
	s.Policy = hasPolicy(&e)
	return s
}

func hasPolicy(e *element.Element) bool {
	l, s, x := &e.Lists, &e.Scope, &e.External
	return len(l.Allow)+len(l.Confirm)+len(l.Deny)+len(s.AllowedTypes)+len(s.BlockedTypes)+
		len(x.Allow)+len(x.Confirm)+len(x.Deny)+len(x.Only)+len(x.Require)+len(x.Scope)+x.Life > 0
}

// activeIDs are the elements in force for the caller.
func (g *Elements) activeIDs(ctx context.Context, j *Job) (map[string]bool, error) {
	sets, err := g.Keeper.Active(ctx, j.Principal)
	out := make(map[string]bool)
	for _, s := range sets {
		for _, a := range s.Active {
			out[library.ID(a.Type, a.Name)] = true
		}
	}
	return out, err
}

// knownType refuses a type of element that does not exist.
func knownType(elementType string, optional bool) error {
	if elementType == "" && optional || slices.Contains(call.ElementTypes(), elementType) {
		return nil
	}
	if elementType == "" {
		return refused("element_type is missing: one of %s", strings.Join(call.ElementTypes(), ", "))
	}
	return unknown("element type", elementType, call.ElementTypes())
}

type nameParams struct {
	Name string `json:"name" about:"the element's name"`
}

// Shown is an element in full.
type Shown struct {
	Summary
	Digest   call.Digest       `json:"digest"`
	Metadata map[string]any    `json:"metadata,omitzero"`
	Text     string            `json:"text,omitzero"`
	Entries  []element.Entry   `json:"entries,omitzero"`
	Problems []element.Problem `json:"problems,omitzero"`
}

func (g *Elements) file(j *Job, name string) (*library.File, error) {
	if err := knownType(j.ElementType, false); err != nil {
		return nil, err
	}
	return g.Library.Get(j.ElementType, name)
}

func (g *Elements) get(ctx context.Context, j *Job, p nameParams) (any, error) {
	f, err := g.file(j, p.Name)
	if err != nil {
		return nil, err
	}
	active, err := g.activeIDs(ctx, j)
	if err != nil {
		return nil, err
	}
	out := Shown{Summary: summarise(f), Digest: f.Digest}
	out.Active = active[f.ID()]
	if f.Doc == nil {
		return out, nil
	}
	out.Metadata, out.Text, out.Problems = f.Doc.Metadata(), f.Doc.Body, f.Doc.Problems
	out.Entries, err = f.Doc.Entries()
	return out, err
}

// Exported is an element's text.
type Exported struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (g *Elements) export(_ context.Context, j *Job, p nameParams) (any, error) {
	f, err := g.file(j, p.Name)
	if err != nil {
		return nil, err
	}
	if f.Doc == nil {
		return nil, refused("%s cannot be read: %s", f.Path, f.Broken)
	}
	text, err := f.Doc.Encode()
	return Exported{Path: f.Path, Content: string(text)}, err
}

type validateParams struct {
	Name    string `json:"name,omitzero" about:"an element of the library"`
	Content string `json:"content,omitzero" about:"or the text of one: Markdown with metadata in front, YAML for a memory"`
}

// Validation is what is wrong with an element, and what it would change.
type Validation struct {
	Valid    bool              `json:"valid"`
	Problems []element.Problem `json:"problems,omitzero"`
	// Changes are the operations whose level would differ for the caller if
	// the element were active, Loosens why a person would be asked.
	Changes []LevelChange `json:"changes,omitzero"`
	Loosens []string      `json:"loosens,omitzero"`
}

// LevelChange is an operation whose level would differ.
type LevelChange struct {
	Operation string     `json:"operation"`
	From      call.Level `json:"from"`
	To        call.Level `json:"to"`
}

func (g *Elements) validate(ctx context.Context, j *Job, p validateParams) (any, error) {
	if err := knownType(j.ElementType, false); err != nil {
		return nil, err
	}
	var doc *element.Document
	switch {
	case (p.Name == "") == (p.Content == ""):
		return nil, refused("give either name or content")
	case p.Content != "":
		d, err := element.Parse(j.ElementType, "unnamed", formatOf(j.ElementType, p.Content), []byte(p.Content))
		if err != nil {
			return Validation{Problems: []element.Problem{{Text: err.Error(), Fatal: true}}}, nil
		}
		doc = d
	default:
		f, err := g.file(j, p.Name)
		if err != nil {
			return nil, err
		}
		if f.Doc == nil {
			return Validation{Problems: []element.Problem{{Text: f.Broken, Fatal: true}}}, nil
		}
		doc = f.Doc
	}
	now, err := g.Keeper.InForce(ctx, j.Principal)
	if err != nil {
		return nil, err
	}
	e := doc.Element()
	change := &element.Change{Add: []element.Element{e}}
	before, after := element.Compile(now), element.Compile(element.Apply(now, change))
	out := Validation{Valid: e.Quarantine == "", Problems: doc.Problems, Loosens: before.Loosens(change)}
	for _, op := range call.Operations() {
		from, to := before.Resolve(op.Name, "", false).Level, after.Resolve(op.Name, "", false).Level
		if from != to {
			out.Changes = append(out.Changes, LevelChange{op.Name, from, to})
		}
	}
	return out, nil
}

// formatOf tells Markdown from YAML: a Markdown file starts with its metadata.
func formatOf(elementType, text string) element.Format {
	if elementType == "memory" && !strings.HasPrefix(text, "---\n") {
		return element.YAML
	}
	return element.Markdown
}

type createParams struct {
	Name         string         `json:"name" about:"what it is called"`
	Description  string         `json:"description" about:"what it is for"`
	Content      *string        `json:"content,omitzero" about:"its text, in Markdown"`
	Instructions *string        `json:"instructions,omitzero" about:"how to behave when it is active"`
	Metadata     map[string]any `json:"metadata,omitzero" about:"further members of its metadata"`
	Gatekeeper   map[string]any `json:"gatekeeper,omitzero" about:"the policy it carries: allow, confirm, deny, scopeRestrictions, externalRestrictions"`
	Elements     []any          `json:"elements,omitzero" about:"the members of an ensemble"`
	Tags         []string       `json:"tags,omitzero" about:"words to find it by"`
}

// Created is an element that was added.
type Created struct {
	Summary
	Problems []element.Problem `json:"remarks,omitzero"`
}

func (g *Elements) create(ctx context.Context, j *Job, p createParams) (any, error) {
	if err := knownType(j.ElementType, false); err != nil {
		return nil, err
	}
	meta := make(map[string]any)
	for k, v := range p.Metadata {
		meta[k] = v
	}
	if p.Gatekeeper != nil {
		meta["gatekeeper"] = p.Gatekeeper
	}
	if p.Elements != nil {
		meta["elements"] = p.Elements
	}
	if p.Tags != nil {
		meta["tags"] = p.Tags
	}
	first := p.Content
	if j.ElementType == "memory" {
		p.Content = nil
	}
	doc, err := element.New(j.ElementType, p.Name, &element.Draft{Description: &p.Description, Instructions: p.Instructions, Body: p.Content, Metadata: meta}, time.Now())
	if err == nil && j.ElementType == "memory" && first != nil {
		doc, err = doc.AddEntry(newEntry(*first, nil, nil))
	}
	if err != nil {
		return nil, refused("%v", err)
	}
	return g.add(ctx, j, doc)
}

// add writes a new element whose policy loads.
func (g *Elements) add(ctx context.Context, j *Job, doc *element.Document) (any, error) {
	if e := doc.Element(); e.Quarantine != "" {
		return nil, refused("it was not created, its policy or text is refused: %s", e.Quarantine)
	}
	if err := j.Trail.Writing(ctx, library.Place(doc), doc); err != nil {
		return nil, err
	}
	if err := g.Library.Create(doc); err != nil {
		return nil, err
	}
	f, err := g.Library.Get(doc.Type, doc.Name)
	if err != nil {
		return nil, err
	}
	return Created{Summary: summarise(f), Problems: doc.Problems}, nil
}

type importParams struct {
	Content string `json:"content" about:"the text of the element's file"`
}

func (g *Elements) importText(ctx context.Context, j *Job, p importParams) (any, error) {
	if err := knownType(j.ElementType, false); err != nil {
		return nil, err
	}
	doc, err := element.Parse(j.ElementType, "", formatOf(j.ElementType, p.Content), []byte(p.Content))
	if err != nil {
		return nil, refused("%v", err)
	}
	return g.add(ctx, j, doc)
}

func (g *Elements) edit(ctx context.Context, j *Job, _ activation.EditParams) (any, error) {
	if err := knownType(j.ElementType, false); err != nil {
		return nil, err
	}
	f, err := g.Keeper.Edit(ctx, order(j))
	if err != nil {
		return nil, err
	}
	return summarise(f), nil
}

func (g *Elements) remove(ctx context.Context, j *Job, p nameParams) (any, error) {
	if err := knownType(j.ElementType, false); err != nil {
		return nil, err
	}
	f, err := g.Keeper.Delete(ctx, order(j), j.ElementType, p.Name)
	if err != nil {
		return nil, err
	}
	return summarise(f), nil
}

// order is a job as the keeper takes it.
func order(j *Job) *activation.Order {
	return &activation.Order{Call: j.Call, Approved: j.Approved, World: j.Decision.World, Trail: j.Trail}
}
