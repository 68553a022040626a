package e2e_test

import (
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// stateTables are what people decided and what rests on it. The log grows and
// the clock runs whatever happens; an agent's own sessions are its own.
var stateTables = []string{
	"agent", "approval_grant", "approval_mark", "approval_request", "approver", "danger_block", "keyring", "policy_files",
	"policy_head", "policy_trust", "sign_in_link", "switches", "console_session",
}

// dump is everything people decided, as it is in the database.
func (w *world) dump() string {
	w.t.Helper()
	db := w.Database()
	defer db.Close()
	return gatetest.Dump(w.t, db, stateTables...)
}
