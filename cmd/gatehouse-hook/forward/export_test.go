package forward

// ParseAnswer shows parseAnswer to tests.
func ParseAnswer(reply []byte) (exit int, stdout, stderr string, err error) {
	a, err := parseAnswer(reply)
	if err != nil {
		return 0, "", "", err
	}
	return a.exit, string(a.stdout), string(a.stderr), nil
}

// Parse shows parse to tests.
func Parse(args []string) error {
	_, err := parse(args)
	return err
}
