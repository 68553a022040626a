package sandbox

// Plans have no exported form; these show the tests what back-ends would make
// of one.

func samplePlan(image string) *plan {
	s := &Spec{Command: []string{"tool"}, Image: image}
	return &plan{
		spec: s, limits: Limits{Memory: 1 << 30, Processes: 99, OpenFiles: 64, TempSize: 1 << 20}, dir: "/w", home: "/home/u", path: "/usr/bin/tool",
		roots:  []root{{path: "/r", dir: true}, {path: "/w", write: true, dir: true}, {path: `/odd,"name`, write: true}},
		pins:   []string{"/w/.git"},
		sealed: []finding{{path: "/w/.git/hooks"}, {path: "/w/link", link: "x"}},
		guard:  &guard{suffixes: [][]string{{".git", "hooks"}}, paths: []string{"/gate"}},
	}
}

// SampleContainerArgs is the command line for a sample plan.
func SampleContainerArgs(engine Backend, image string) []string {
	return containerArgs(engine, samplePlan(image), containerRoot{image: image, keep: engine == Podman}, 7, 8, "/stage", hardLimits{1000, 2000})
}

// SampleSeatbeltProfile is the profile of a sample plan.
func SampleSeatbeltProfile(port uint16) string {
	p := samplePlan("")
	p.port = port
	return seatbeltProfile(p, "/private/tmp/x")
}
