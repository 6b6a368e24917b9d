package httpapi

import (
	"slices"
	"strings"
)

// roles is a set of roles.
type roles uint8

// The roles.
const (
	booking  roles = 1 << iota // sells: holds and purchases, and reads of what is for sale
	finance                    // reads everything, posts entries, refunds, resolves cases
	operator                   // runs events: reads everything, changes events and tiers
	auditor                    // reads everything
	admin                      // does everything
)

// roleNames are the names of the roles, in the order of their bits.
var roleNames = []string{"booking", "finance", "operator", "auditor", "admin"}

// parseRoles reads a comma-separated list; false when a name is unknown.
func parseRoles(list string) (roles, bool) {
	var set roles
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(roleNames, name)
		if i < 0 {
			return 0, false
		}
		set |= 1 << i
	}
	return set, true
}

// names lists the roles in the set.
func (r roles) names() []string {
	var names []string
	for i, name := range roleNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}
