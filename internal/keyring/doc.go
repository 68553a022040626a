// Package keyring holds the gate's two symmetric keys and the secrets it
// hands out.
//
// One key signs rows: whoever can write to the database but cannot read the
// key can remove a row or put an old one back, and cannot make or change one
// ([Keyring.Row]). The other seals what must not lie about in clear, such as
// the arguments of a waiting call ([Keyring.Seal]). Both live in a directory
// that only the gate's user may enter; [Load] refuses one that others could
// have read or replaced. [Keyring.Bind] ties the keys to one database, so that
// a node with other keys does not start and an emptied database is noticed.
//
// Secrets for people and agents are made by [Mint] and kept as hashes only
// ([HashOf]). Their prefixes tell the kinds apart, so that an agent's token is
// never looked up among approvers' credentials.
//
// The package never writes a secret to the database, a log or an error. What
// the signature cannot see is a row that was put back as it once was; state
// that only moves forward must therefore also be in the audit log.
package keyring
