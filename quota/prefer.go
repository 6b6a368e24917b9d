package quota

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tierledger/tierledger/buckets"
)

// ParseLanes reads which lanes a process prefers: their numbers, as in "1,4", or "i/n" for
// the i-th of n processes, which share the lanes out by their numbers; all for "".
func ParseLanes(text string) (func(lane int) bool, error) {
	if text == "" {
		return func(int) bool { return true }, nil
	}
	if i, n, ok := strings.Cut(text, "/"); ok {
		part, err := strconv.Atoi(i)
		parts, partsErr := strconv.Atoi(n)
		if err != nil || partsErr != nil || parts < 1 || part < 1 || part > parts {
			return nil, fmt.Errorf("%q must be i/n, the i-th of n processes", text)
		}
		return func(lane int) bool { return (lane-1)%parts == part-1 }, nil
	}
	preferred := make(map[int]bool)
	for one := range strings.SplitSeq(text, ",") {
		lane, err := strconv.Atoi(strings.TrimSpace(one))
		if err != nil || lane < 1 || lane > buckets.MaxLanes {
			return nil, fmt.Errorf("%q must be numbers of lanes from 1 to %d, or i/n", text, buckets.MaxLanes)
		}
		preferred[lane] = true
	}
	return func(lane int) bool { return preferred[lane] }, nil
}
