package session

import (
	"crypto/hmac"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Block is an agent in the danger zone.
type Block struct {
	// ID names this block; one that is set anew has another.
	ID    string `json:"id"`
	Agent string `json:"agent"`
	// Workspace is where it came to the block. Whoever works there is blocked
	// as well, whatever it calls itself; "" reaches the agent alone.
	Workspace string    `json:"workspace,omitzero"`
	Reason    string    `json:"reason"`
	By        string    `json:"by"`
	At        time.Time `json:"at"`
}

func (g *Registry) blockRow(b *Block) *keyring.Row {
	return g.keys.Row("block").Text(b.ID, b.Agent, b.Workspace, b.Reason, b.By).Time(b.At)
}

// SetBlock blocks an agent in all its sessions, under any spelling of its
// name, with everything it started. Blocking one that is blocked keeps the
// first block, which is returned. The caller fills in agent, workspace, reason
// and by.
func (g *Registry) SetBlock(tx *store.Tx, b Block) (Block, error) {
	if err := checkWords(b.Agent, b.Workspace, b.By, b.Reason); err != nil {
		return b, err
	}
	var err error
	if b.At, err = tx.Now(); err != nil {
		return b, err
	}
	if b.ID, err = keyring.NewID("b_", g.keys.Random()); err != nil {
		return b, err
	}
	if b.Agent = AgentID(b.Agent); b.Agent == "" {
		return b, fmt.Errorf("%w: a block needs an agent", ErrInvalid)
	}
	if !filepath.IsAbs(b.Workspace) || filepath.Clean(b.Workspace) == "/" {
		b.Workspace = "" // the whole machine is nobody's workspace
	}
	err = g.changeBlocks(tx, func(before []Block) error {
		if i := slices.IndexFunc(before, func(o Block) bool { return o.Agent == b.Agent }); i >= 0 {
			b = before[i]
			return nil
		}
		_, err := tx.Exec(`INSERT INTO danger_block (id, agent, workspace, reason, set_by, set_at, mac) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			b.ID, b.Agent, b.Workspace, b.Reason, b.By, keyring.Micros(b.At), g.blockRow(&b).Sum())
		return err
	})
	return b, err
}

// changeBlocks changes the list of blocks. One that is not as the gate left it
// is not signed anew: that would make the edit good.
func (g *Registry) changeBlocks(tx *store.Tx, change func(before []Block) error) error {
	s, err := g.readSwitches(tx, tx.ForUpdate())
	if err != nil {
		return err
	}
	before, err := g.Blocks(tx)
	if err != nil {
		return err
	}
	if !hmac.Equal(g.blockList(before), s.blocks) {
		return fmt.Errorf("danger blocks: %w", ErrForged)
	}
	if err := change(before); err != nil {
		return err
	}
	after, err := g.Blocks(tx)
	if err != nil {
		return err
	}
	s.blocks = g.blockList(after)
	store.Notify(tx, Topic, "block")
	return g.writeSwitches(tx, s)
}

// blockList signs which agents are blocked. Blocks come in the order of their
// names.
func (g *Registry) blockList(blocks []Block) []byte {
	row := g.keys.Row("blocks")
	for i := range blocks {
		row.Text(blocks[i].Agent)
	}
	return row.Sum()
}

// Unblock releases an agent from one block; a block that was set since is
// another and stays. It works on a corrupt row too, since a person looked at
// it. Like releasing the kill switch it is for approvers alone.
func (g *Registry) Unblock(tx *store.Tx, agent, id string) error {
	return g.changeBlocks(tx, func([]Block) error {
		n, err := tx.Exec(`DELETE FROM danger_block WHERE agent = $1 AND id = $2`, AgentID(agent), id)
		if err == nil && n == 0 {
			err = fmt.Errorf("block %s on %s: %w", id, agent, ErrNotFound)
		}
		return err
	})
}

// corrupt is the reason given for a block whose row was edited.
const corrupt = "the block's row was edited in the database; it blocks until an approver releases it"

// Blocks lists the blocked agents by name. A row that was edited is listed as
// such: it blocks.
func (g *Registry) Blocks(tx *store.Tx) ([]Block, error) {
	blocks, err := store.All(tx, func(rows *store.Rows) (Block, error) {
		var b Block
		var at int64
		var mac []byte
		if err := rows.Scan(&b.ID, &b.Agent, &b.Workspace, &b.Reason, &b.By, &at, &mac); err != nil {
			return b, err
		}
		b.At = keyring.Time(at)
		if !g.blockRow(&b).Is(mac) {
			b.Reason = corrupt
		}
		return b, nil
	}, `SELECT id, agent, workspace, reason, set_by, set_at, mac FROM danger_block`)
	// Sorted here: a database's order of names can change with its system's.
	slices.SortFunc(blocks, func(a, b Block) int { return strings.Compare(a.Agent, b.Agent) })
	return blocks, err
}

// blocking returns the block that reaches a principal, nil if none does: one
// on the agent itself, on an agent it was started by, or on whoever works in
// its workspace.
func blocking(blocks []Block, agent string, s *Session) *Block {
	agents, workspace := []string{agent}, ""
	if s != nil {
		agents, workspace = append(agents, s.Lineage...), s.Workspace
	}
	for i := range blocks {
		b := &blocks[i]
		if slices.Contains(agents, b.Agent) || b.Workspace != "" && within(workspace, b.Workspace) {
			return b
		}
	}
	return nil
}

// within says whether a directory is the other or below it.
func within(dir, root string) bool {
	rel, err := filepath.Rel(root, dir)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
