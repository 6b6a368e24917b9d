package httpapi

// command reads what a command needs: its key, and its body into the struct that
// dst points to.
func (c *call) command(dst any) (key string, err error) {
	if key, err = c.key(); err != nil {
		return "", err
	}
	if err := c.unconditional(); err != nil {
		return "", err
	}
	return key, c.body(dst)
}

// maybeDry reads whether the call is a dry run, and else its key. A dry run is
// remembered under no key.
func (c *call) maybeDry() (dryRun bool, key string, err error) {
	if dryRun, err = c.dryRun(); err != nil || dryRun {
		return dryRun, "", err
	}
	key, err = c.key()
	return false, key, err
}
