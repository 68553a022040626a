// Package tooltest holds an agent against the permission manifest that was
// reviewed, in one line of a test:
//
//	func TestPermissions(t *testing.T) { tooltest.Manifest(t, newAgent(t), "permissions.json") }
//
// The test fails with one finding per line if the agent may do more than the
// manifest says, and if the manifest is out of date in any other way. Run it
// with GATEHOUSE_UPDATE=1 to write the manifest anew, and review the difference
// before you commit it.
//
// The vet checker's waivers in the package's source go into the manifest, so
// that a reviewer sees them. Nothing here runs a tool.
package tooltest
