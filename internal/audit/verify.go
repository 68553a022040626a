package audit

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Fault names what is wrong with a log.
type Fault string

// The faults a verification finds.
const (
	Changed      Fault = "changed"       // a record's content does not fit its hash, or its hash the chain
	BodyChanged  Fault = "body changed"  // a record's body does not fit its commitment
	BodyMissing  Fault = "body missing"  // a body is gone that no recorded retention dropped
	Missing      Fault = "missing"       // a record is gone
	Inserted     Fault = "inserted"      // a record was put between two others
	Reordered    Fault = "reordered"     // two records have changed places
	Cut          Fault = "cut"           // the log ends before a checkpoint does
	WrongRoot    Fault = "wrong root"    // the records do not hash to the root that was signed or stored
	Foreign      Fault = "foreign"       // a checkpoint is not signed by the key, or belongs to another log
	IndexDamaged Fault = "index damaged" // the tables that order records or find them do not fit the records
)

// maxProblems bounds a report: a log that was replaced differs everywhere.
const maxProblems = 1000

// Problem is one fault and where it is.
type Problem struct {
	Fault  Fault  `json:"fault"`
	Index  int64  `json:"index"` // of the record, or Unsequenced
	ID     string `json:"id,omitempty"`
	Node   string `json:"node,omitempty"`
	Seq    int64  `json:"seq,omitempty"`
	Detail string `json:"detail"`
}

func (p Problem) String() string {
	where := "log"
	switch {
	case p.Index >= 0:
		where = fmt.Sprintf("record %d", p.Index)
	case p.Seq > 0:
		where = fmt.Sprintf("record %d of node %s", p.Seq, p.Node)
	}
	return fmt.Sprintf("%s: %s: %s", where, p.Fault, p.Detail)
}

// Report is what a verification found.
type Report struct {
	Origin      string    `json:"origin"`
	Size        int64     `json:"size"` // records in the tree
	Root        tlog.Hash `json:"root"`
	Unsequenced int64     `json:"unsequenced"` // records that wait for their index; their chains were checked
	Dropped     int64     `json:"dropped"`     // bodies dropped by retention
	Checkpoints int       `json:"checkpoints"` // checkpoints whose signature and root are right
	Covered     int64     `json:"covered"`     // the size of the largest of them
	Problems    []Problem `json:"problems"`
}

// OK says that nothing is wrong.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// checker judges records one after the other, in the order of the log. It needs nothing but them and the checkpoints,
// and so serves the tables and an export alike.
type checker struct {
	report    Report
	verifiers note.Verifiers
	frontier  frontier
	// broken is set at the first record that cannot be trusted: from there on the tree cannot be computed.
	broken      bool
	chains      map[string]*chainCheck
	checkpoints []Checkpoint
	before      int64 // the size of the checkpoint before the one covered
	// The youngest records without a body, and up to which time a recorded retention allowed that.
	drops      []*Record
	droppable  int64
	onSubtree  func(level int, n int64, hash tlog.Hash) // nil for an export
	unverified []suspect
}

func newChecker(verifiers note.Verifiers) *checker {
	return &checker{verifiers: verifiers, chains: make(map[string]*chainCheck)}
}

func (c *checker) problem(p Problem) {
	if len(c.report.Problems) < maxProblems {
		c.report.Problems = append(c.report.Problems, p)
	}
}

func (c *checker) blame(f Fault, r *Record, format string, args ...any) {
	c.broken = true
	c.problem(Problem{Fault: f, Index: r.Index, ID: r.ID, Node: r.Node, Seq: r.Seq, Detail: fmt.Sprintf(format, args...)})
}

// checkpoint takes a signed note to be held against the records, and says whether it can be. All must be given before
// the first record.
func (c *checker) checkpoint(signed []byte, where string) (Checkpoint, bool) {
	cp, err := openCheckpoint(signed, c.verifiers)
	switch {
	case err != nil:
		c.problem(Problem{Fault: Foreign, Index: Unsequenced, Detail: fmt.Sprintf("%s: %v", where, err)})
		return cp, false
	case cp.Origin != c.report.Origin:
		c.problem(Problem{Fault: Foreign, Index: Unsequenced,
			Detail: fmt.Sprintf("%s is of log %q; this is %q", where, cp.Origin, c.report.Origin)})
		return cp, false
	}
	c.checkpoints = append(c.checkpoints, cp)
	slices.SortStableFunc(c.checkpoints, func(a, b Checkpoint) int { return cmp.Compare(a.Size, b.Size) })
	return cp, true
}

// record judges the next record of the log.
func (c *checker) record(r *Record) {
	c.compareRoots()
	c.body(r)
	c.chain(r.Node).check(c, r)
	c.frontier.add(r.Hash, func(level int, n int64, hash tlog.Hash) {
		if c.onSubtree != nil && !c.broken {
			c.onSubtree(level, n, hash)
		}
	})
}

// missing notes a hole in the log.
func (c *checker) missing(index int64, nodeName string, seq int64) {
	c.broken = true
	c.problem(Problem{Fault: Missing, Index: index, Node: nodeName, Seq: seq, Detail: "the record is gone"})
	c.chain(nodeName).skip(seq)
	c.frontier.add(tlog.Hash{}, func(int, int64, tlog.Hash) {})
}

func (c *checker) chain(nodeName string) *chainCheck {
	if c.chains[nodeName] == nil {
		c.chains[nodeName] = &chainCheck{next: 1}
	}
	return c.chains[nodeName]
}

// body holds the body against its commitment, and a missing one against the recorded retentions.
func (c *checker) body(r *Record) {
	if before, ok := retentionOf(r); ok {
		c.droppable = max(c.droppable, before.UnixMicro())
	}
	if r.Dropped {
		c.report.Dropped++
		c.drop(r)
		return
	}
	if bodyHash(r.salt, r.Body) != r.BodyHash {
		c.blame(BodyChanged, r, "the body does not fit its hash")
	}
}

// drop notes a record without a body. Only the youngest can turn out to be too young, and there may be millions.
func (c *checker) drop(r *Record) {
	c.drops = append(c.drops, &Record{Index: r.Index, ID: r.ID, Node: r.Node, Seq: r.Seq, Time: r.Time})
	if len(c.drops) >= 4*maxProblems {
		slices.SortStableFunc(c.drops, func(a, b *Record) int { return b.Time.Compare(a.Time) })
		c.drops = c.drops[:maxProblems]
	}
}

// compareRoots holds the checkpoints of the current size against the tree.
func (c *checker) compareRoots() {
	for len(c.checkpoints) > 0 && c.checkpoints[0].Size <= c.frontier.size {
		cp := c.checkpoints[0]
		c.checkpoints = c.checkpoints[1:]
		switch {
		case c.broken:
		case c.frontier.root() == cp.Root:
			c.report.Checkpoints++
			if c.report.Covered < cp.Size {
				c.before, c.report.Covered = c.report.Covered, cp.Size
			}
		default:
			c.broken = true
			sound := c.report.Covered
			if sound == cp.Size { // another checkpoint of this size agrees with the records: it may be the forged one
				sound = c.before
			}
			c.problem(Problem{Fault: WrongRoot, Index: Unsequenced, Detail: fmt.Sprintf("the first %d records do not hash "+
				"to the root that was signed; those before %d do: something between was changed", cp.Size, sound)})
		}
	}
}

// finish judges what can only be judged at the end.
func (c *checker) finish(head head) {
	c.compareRoots()
	c.report.Size, c.report.Root = c.frontier.size, c.frontier.root()
	switch {
	case head.size != c.frontier.size:
		c.problem(Problem{Fault: IndexDamaged, Index: Unsequenced,
			Detail: fmt.Sprintf("the head names %d records, there are %d", head.size, c.frontier.size)})
	case !c.broken && head.root != c.report.Root:
		c.problem(Problem{Fault: WrongRoot, Index: Unsequenced,
			Detail: fmt.Sprintf("the %d records do not hash to the stored root", head.size)})
	}
	for _, cp := range c.checkpoints {
		c.problem(Problem{Fault: Cut, Index: c.frontier.size,
			Detail: fmt.Sprintf("%d records were signed for, the log ends after %d", cp.Size, c.frontier.size)})
	}
	for _, r := range c.drops {
		if r.Time.UnixMicro() >= c.droppable {
			c.blame(BodyMissing, r, "the body is gone, and no recorded retention dropped it")
		}
	}
	c.unravel()
}

// Err is nil if nothing is wrong; otherwise an error that names the first problem and wraps ErrTampered.
func (r *Report) Err() error {
	if r.OK() {
		return nil
	}
	return fmt.Errorf("%w: %s (%d problems in all)", ErrTampered, r.Problems[0], len(r.Problems))
}
