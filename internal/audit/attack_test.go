package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// victim is a log of 330 sequenced records, signed at 110, 220 and 330, and 5 that wait.
type victim struct {
	store       *store.Store
	keys        *audit.Keys
	checkpoints []audit.Checkpoint
}

func newVictim(t testing.TB, s *store.Store) *victim {
	v := &victim{store: s, keys: newKeys(t)}
	q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: v.keys})
	for i := range 3 {
		fill(t, s, i*110, (i+1)*110)
		v.checkpoints = append(v.checkpoints, checkpoint(t, q))
	}
	fill(t, s, 330, 335)
	return v
}

// at is the position of the record at an index: the only node of a victim has the number 1.
func at(index int) int64 { return 1<<40 | int64(index+1) }

// TestVerifyFinds carries out one attack after the other on tables that somebody owns, and expects to be told which
// record it was and what is wrong with it.
func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		attack []string
		want   []audit.Problem // without identifiers and details
	}{
		"a bit of the stored hash": {
			attack: []string{flip("hash", at(300))},
			want:   []audit.Problem{{Fault: audit.Changed, Index: 300, Node: "test", Seq: 301}},
		},
		"a bit of the stored hash of the last record": {
			attack: []string{flip("hash", at(334))},
			want:   []audit.Problem{{Fault: audit.Changed, Index: -1, Node: "test", Seq: 335}},
		},
		"a bit of the body": {
			attack: []string{flip("body", at(17))},
			want:   []audit.Problem{{Fault: audit.BodyChanged, Index: 17, Node: "test", Seq: 18}},
		},
		"a bit of the body of a record that waits": {
			attack: []string{flip("body", at(333))},
			want:   []audit.Problem{{Fault: audit.BodyChanged, Index: -1, Node: "test", Seq: 334}},
		},
		"a bit of the salt": {
			attack: []string{flip("salt", at(329))},
			want:   []audit.Problem{{Fault: audit.BodyChanged, Index: 329, Node: "test", Seq: 330}},
		},
		"the body together with its hash": {
			attack: []string{flip("body_hash", at(17)), flip("body", at(17))},
			want: []audit.Problem{
				{Fault: audit.BodyChanged, Index: 17, Node: "test", Seq: 18},
				{Fault: audit.Changed, Index: 17, Node: "test", Seq: 18},
			},
		},
		"a body dropped outside retention": {
			attack: []string{fmt.Sprintf(`UPDATE audit_record SET body = NULL, salt = NULL WHERE pos = %d`, at(250))},
			want:   []audit.Problem{{Fault: audit.BodyMissing, Index: 250, Node: "test", Seq: 251}},
		},
		"one record removed": {
			attack: []string{fmt.Sprintf(`DELETE FROM audit_record WHERE pos = %d`, at(255))},
			want:   []audit.Problem{{Fault: audit.Missing, Index: 255, Node: "test", Seq: 256}},
		},
		"one record removed and the others moved up": {
			attack: []string{
				fmt.Sprintf(`DELETE FROM audit_record WHERE pos = %d`, at(255)),
				fmt.Sprintf(`UPDATE audit_record SET pos = -pos WHERE pos > %d`, at(255)),
				`UPDATE audit_record SET pos = -pos - 1 WHERE pos < 0`,
			},
			want: []audit.Problem{{Fault: audit.Missing, Index: 255, Node: "test", Seq: 256}},
		},
		"a waiting record removed": {
			attack: []string{fmt.Sprintf(`DELETE FROM audit_record WHERE pos = %d`, at(332))},
			want:   []audit.Problem{{Fault: audit.Missing, Index: -1, Node: "test", Seq: 334}},
		},
		"one record inserted": {
			attack: append(makeRoom(at(100)), insertCopy(at(99), at(100))),
			want:   []audit.Problem{{Fault: audit.Inserted, Index: 100, Node: "test", Seq: 101}},
		},
		"a record of nobody": {
			attack: []string{insertCopy(at(99), 7<<40|1)},
			want:   []audit.Problem{{Fault: audit.Inserted, Index: -1, Seq: 1}},
		},
		"two neighbours reordered": {
			attack: exchange(at(40), at(41)),
			want: []audit.Problem{
				{Fault: audit.Reordered, Index: 40, Node: "test", Seq: 41},
				{Fault: audit.Reordered, Index: 41, Node: "test", Seq: 42},
			},
		},
		"two distant records reordered": {
			attack: exchange(at(40), at(310)),
			want: []audit.Problem{
				{Fault: audit.Reordered, Index: 40, Node: "test", Seq: 41},
				{Fault: audit.Reordered, Index: 310, Node: "test", Seq: 311},
			},
		},
		"the tail cut, tree and all": {
			attack: cutTo(270),
			want:   []audit.Problem{{Fault: audit.Cut, Index: 270}},
		},
		"the stored root swapped": {
			attack: []string{fmt.Sprintf(`UPDATE audit_head SET root = (SELECT hash FROM audit_record WHERE pos = %d)`, at(3))},
			want:   []audit.Problem{{Fault: audit.WrongRoot, Index: -1}},
		},
		"a checkpoint's root swapped": {
			attack: []string{`UPDATE audit_checkpoint SET root = (SELECT root FROM audit_checkpoint WHERE size = 110) WHERE size = 220`},
			want:   []audit.Problem{{Fault: audit.WrongRoot, Index: -1}},
		},
		"a checkpoint's text swapped": {
			attack: []string{`UPDATE audit_checkpoint SET note = (SELECT note FROM audit_checkpoint WHERE size = 110) WHERE size = 220`},
			want:   []audit.Problem{{Fault: audit.WrongRoot, Index: -1}},
		},
		"a bit of a checkpoint's text": {
			attack: []string{`UPDATE audit_checkpoint SET note = CAST('x' AS ` + bytesType + `) WHERE size = 220`},
			want:   []audit.Problem{{Fault: audit.Foreign, Index: -1}},
		},
		"a hash in the tree": {
			attack: []string{`UPDATE audit_subtree SET hash = (SELECT root FROM audit_head) WHERE n = 0`},
			want:   []audit.Problem{{Fault: audit.IndexDamaged, Index: -1}},
		},
		"a time in the tree": {
			attack: []string{`UPDATE audit_subtree SET latest = latest + 1 WHERE n = 0`},
			want:   []audit.Problem{{Fault: audit.IndexDamaged, Index: -1}},
		},
		"records skipped by the order": {
			attack: []string{`UPDATE audit_node SET sequenced = sequenced + 5`},
			want:   []audit.Problem{{Fault: audit.IndexDamaged, Index: -1}},
		},
		"the list made to overlook a value": {
			attack: []string{`UPDATE audit_posting SET bits = CAST('' AS ` + bytesType + `) WHERE block = 0 AND key = ` + postingOfFirst},
			want:   []audit.Problem{{Fault: audit.IndexDamaged, Index: 0, Node: "test", Seq: 1}},
		},
	}
	for column, value := range map[string]string{
		"time": "time + 1", "kind": "'Call'", "call_id": "'x'", "principal": "'me'", "session": "''", "surface": "'http'",
		"operation": "'op-1 '", "level": "'deny'", "outcome": "'refused'", "correlation": "'y'",
	} {
		test := tests["one record removed"]
		test.attack = []string{fmt.Sprintf(`UPDATE audit_record SET %s = %s WHERE pos = %d`, column, value, at(290))}
		test.want = []audit.Problem{{Fault: audit.Changed, Index: 290, Node: "test", Seq: 291}}
		tests["column "+column] = test
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Both(t, func(t *testing.T, s *store.Store) {
				v := newVictim(t, s)
				attack(t, s, translate(t, s, test.attack)...)
				report := verify(t, s, v.keys, nil)
				if err := report.Err(); !errors.Is(err, audit.ErrTampered) || !strings.Contains(err.Error(), string(test.want[0].Fault)) {
					t.Errorf("the report's error is %v", err)
				}
				found := report.Problems[:min(len(report.Problems), len(test.want))]
				if diff := cmp.Diff(test.want, found, cmpopts.IgnoreFields(audit.Problem{}, "ID", "Detail")); diff != "" {
					t.Errorf("problems (-want +got):\n%s\nall: %v", diff, report.Problems)
				}
			})
		})
	}
}

// What whoever holds the key and the database rewrites from scratch, only a checkpoint kept elsewhere finds.
func TestVerifyAgainstOldCheckpoint(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		v := newVictim(t, s)
		attack(t, s, translate(t, s, append(cutTo(270), `DELETE FROM audit_checkpoint WHERE size > 270`))...)
		if report := verify(t, s, v.keys, nil); !report.OK() {
			t.Errorf("the rewritten log alone is consistent, got %v", report.Problems)
		}
		kept := v.checkpoints[2].Note
		report := verify(t, s, v.keys, kept)
		want := []audit.Problem{{Fault: audit.Cut, Index: 270}}
		if diff := cmp.Diff(want, report.Problems, cmpopts.IgnoreFields(audit.Problem{}, "Detail")); diff != "" {
			t.Errorf("problems (-want +got):\n%s", diff)
		}
		// The attacker goes on with a new tail and signs it: the same size, another root.
		fill(t, s, 1000, 1060)
		checkpoint(t, audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: v.keys}))
		if report := verify(t, s, v.keys, nil); !report.OK() {
			t.Errorf("the forged tail alone is consistent, got %v", report.Problems)
		}
		report = verify(t, s, v.keys, kept)
		want = []audit.Problem{{Fault: audit.WrongRoot, Index: -1}}
		if diff := cmp.Diff(want, report.Problems, cmpopts.IgnoreFields(audit.Problem{}, "Detail")); diff != "" {
			t.Errorf("problems (-want +got):\n%s", diff)
		}
		if !strings.Contains(report.Problems[0].Detail, "those before 220 do") {
			t.Errorf("the report does not narrow it down: %s", report.Problems[0])
		}
	})
}

func TestVerifyForeignCheckpoint(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		v := newVictim(t, s)
		other := storetest.Open(t, storetest.SQLite(t))
		fill(t, other, 0, 330)
		sameKey := checkpoint(t, audit.NewSequencer(audit.New(other), audit.SequencerOptions{Keys: v.keys}))
		otherKey := newVictim(t, storetest.Open(t, storetest.SQLite(t))).checkpoints[2]
		for name, note := range map[string][]byte{
			"of another log": sameKey.Note, "by another key": otherKey.Note, "nonsense": []byte("hello\n"),
			"with another size": bytes.Replace(v.checkpoints[2].Note, []byte("\n330\n"), []byte("\n300\n"), 1),
		} {
			report := verify(t, s, v.keys, note)
			if len(report.Problems) != 1 || report.Problems[0].Fault != audit.Foreign {
				t.Errorf("a checkpoint %s: %v, want it to be foreign", name, report.Problems)
			}
		}
	})
}

// TestVerifyExportFinds attacks the text of an export.
func TestVerifyExportFinds(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	v := newVictim(t, s)
	var out bytes.Buffer
	if err := audit.New(s).Export(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(out.String(), "\n") // a header, three checkpoints, the records
	record := func(index int) int { return 4 + index }
	edit := func(at int, old, new string) func([]string) []string {
		return func(l []string) []string {
			if l[at] = strings.Replace(l[at], old, new, 1); l[at] == lines[at] {
				t.Fatalf("%q is not in line %d", old, at)
			}
			return l
		}
	}
	for name, test := range map[string]struct {
		attack func([]string) []string
		want   audit.Problem
	}{
		"a column": {edit(record(9), "agent-4", "agent-5"), audit.Problem{Fault: audit.Changed, Index: 9}},
		"a body":   {edit(record(9), `\"n\":9`, `\"n\":8`), audit.Problem{Fault: audit.BodyChanged, Index: 9}},
		"a removed record": {func(l []string) []string { return append(l[:record(9)], l[record(10):]...) },
			audit.Problem{Fault: audit.Missing, Index: 9}},
		"a removed tail": {func(l []string) []string { return l[:record(250)] }, audit.Problem{Fault: audit.IndexDamaged, Index: -1}},
		"a removed tail with a new header": {func(l []string) []string {
			return edit(0, `"size":330`, `"size":250`)(l[:record(250)])
		}, audit.Problem{Fault: audit.WrongRoot, Index: -1}},
		"two reordered": {func(l []string) []string {
			l[record(9)], l[record(10)] = l[record(10)], l[record(9)]
			return l
		}, audit.Problem{Fault: audit.Missing, Index: 9}},
		"the root": {edit(0, `"root":"`, `"root":"AAAA`), audit.Problem{}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Join(test.attack(append([]string{}, lines...)), "")
			report, err := audit.VerifyExport(strings.NewReader(text), v.keys.Public(), audit.VerifyOptions{})
			if test.want == (audit.Problem{}) {
				if err == nil {
					t.Error("it could be read")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if report.OK() {
				t.Fatal("nothing was found")
			}
			got := audit.Problem{Fault: report.Problems[0].Fault, Index: report.Problems[0].Index}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("first problem (-want +got):\n%s\nall: %v", diff, report.Problems)
			}
		})
	}
}

// The words in which the two databases differ.
const (
	bytesType      = "$BYTES"
	postingOfFirst = "$FIRST"
)

func translate(t testing.TB, s *store.Store, statements []string) []string {
	t.Helper()
	bytesName := map[store.Dialect]string{store.SQLite: "BLOB", store.Postgres: "BYTEA"}[s.Dialect()]
	var out []string
	for _, q := range statements {
		q = strings.ReplaceAll(q, bytesType, bytesName)
		q = strings.ReplaceAll(q, postingOfFirst, fmt.Sprint(audit.PostingKey(1, audit.KindCall)))
		if rest, ok := strings.CutPrefix(q, "FLIP "); ok {
			q = flipIn(s.Dialect(), rest)
		}
		if rest, ok := strings.CutPrefix(q, "HEAD "); ok {
			q = headOf(t, s, rest)
		}
		out = append(out, q)
	}
	return out
}

// headOf makes the head fit the first records: the attacker computes like we do.
func headOf(t testing.TB, s *store.Store, text string) string {
	t.Helper()
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var root tlog.Hash
	err = s.Read(t.Context(), func(tx *store.Tx) error {
		root, err = audit.RootOf(tx, size)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	literal := map[store.Dialect]string{store.SQLite: "x'%x'", store.Postgres: `'\x%x'`}[s.Dialect()]
	return fmt.Sprintf(`UPDATE audit_head SET size = %d, root = `+literal, size, root[:])
}

// flip changes one bit of a column of bytes.
func flip(column string, pos int64) string { return fmt.Sprintf("FLIP %s %d", column, pos) }

func flipIn(d store.Dialect, what string) string {
	column, pos, _ := strings.Cut(what, " ")
	if d == store.Postgres {
		return fmt.Sprintf(`UPDATE audit_record SET %[1]s = set_bit(%[1]s, 9, 1 - get_bit(%[1]s, 9)) WHERE pos = %[2]s`, column, pos)
	}
	// SQLite has no operator for it: the second byte gets another last bit by way of its hexadecimal text.
	return fmt.Sprintf(`UPDATE audit_record SET %[1]s = unhex(substr(hex(%[1]s), 1, 3) ||
		substr('1032547698BADCFE', instr('0123456789ABCDEF', substr(hex(%[1]s), 4, 1)), 1) || substr(hex(%[1]s), 5))
		WHERE pos = %[2]s`, column, pos)
}

func exchange(a, b int64) []string {
	return []string{
		fmt.Sprintf(`UPDATE audit_record SET pos = -1 WHERE pos = %d`, a),
		fmt.Sprintf(`UPDATE audit_record SET pos = %d WHERE pos = %d`, a, b),
		fmt.Sprintf(`UPDATE audit_record SET pos = %d WHERE pos = -1`, b),
	}
}

func makeRoom(pos int64) []string {
	return []string{
		fmt.Sprintf(`UPDATE audit_record SET pos = -pos WHERE pos >= %d`, pos),
		`UPDATE audit_record SET pos = -pos + 1 WHERE pos < 0`,
	}
}

func insertCopy(from, to int64) string {
	return fmt.Sprintf(`INSERT INTO audit_record SELECT %d, time, kind, call_id, principal, session, surface, operation,
		level, outcome, correlation, salt, body, body_hash, hash FROM audit_record WHERE pos = %d`, to, from)
}

// cutTo removes everything after the first records and makes the tree fit.
func cutTo(size int) []string {
	return []string{
		fmt.Sprintf(`DELETE FROM audit_record WHERE pos >= %d`, at(size)),
		fmt.Sprintf(`UPDATE audit_run SET size = %d`, size),
		fmt.Sprintf(`UPDATE audit_node SET sequenced = %d`, size),
		fmt.Sprintf(`DELETE FROM audit_subtree WHERE (n + 1) * 256 > %d`, size),
		fmt.Sprintf(`DELETE FROM audit_posting WHERE (block + 1) * 256 > %d`, size),
		fmt.Sprintf("HEAD %d", size),
	}
}
