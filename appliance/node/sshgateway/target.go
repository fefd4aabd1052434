package sshgateway

import (
	"fmt"
	"strings"
)

// Limits of a user name.
const (
	maxTarget    = 256 // bytes
	maxGuestUser = 32  // useradd(8)
	maxRef       = 100 // bytes of the name or ID of a project or an instance
)

// Target is the destination in a client's user name.
type Target struct {
	User     string // user in the guest; empty for the image's default user
	Project  string // name or ID; empty if the instance is given by its ID
	Instance string // name or ID
}

// ParseTarget parses [user%][project/]instance.
func ParseTarget(name string) (Target, error) {
	if len(name) > maxTarget {
		return Target{}, fmt.Errorf("user name has %d bytes, want at most %d", len(name), maxTarget)
	}
	t := Target{}
	rest := name
	if user, after, ok := strings.Cut(rest, "%"); ok {
		if !isGuestUser(user) {
			return Target{}, fmt.Errorf("user name %.64q: %.40q is not a valid user name in the guest", name, user)
		}
		t.User, rest = user, after
	}
	project, instance, ok := strings.Cut(rest, "/")
	if !ok {
		project, instance = "", rest
	}
	if ok && !isRef(project) || !isRef(instance) {
		return Target{}, fmt.Errorf("user name %.64q: want project/instance, or user%%project/instance", name)
	}
	t.Project, t.Instance = project, instance
	return t, nil
}

// isRef reports whether s has only characters of a name or an ID.
func isRef(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return s != "" && len(s) <= maxRef && strings.Trim(s, letters) == ""
}

func isGuestUser(s string) bool { return isRef(s) && len(s) <= maxGuestUser && s[0] != '-' }
