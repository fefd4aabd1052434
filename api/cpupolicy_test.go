package api

import (
	"errors"
	"slices"
	"testing"
)

// TestCPULists parses and formats lists of CPUs in the kernel's format.
func TestCPULists(t *testing.T) {
	for list, want := range map[string][]int{
		"": nil, "0": {0}, "0-3,8\n": {0, 1, 2, 3, 8}, "5,1-2,2": {1, 2, 5}, "8190-8191": {8190, 8191},
	} {
		got, err := ParseCPUs(list)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseCPUs(%q) = %v, %v, want %v", list, got, err, want)
		}
		again, err := ParseCPUs(FormatCPUs(got))
		if err != nil || !slices.Equal(again, want) {
			t.Errorf("ParseCPUs(FormatCPUs(%v)) = %v, %v, want the same", want, again, err)
		}
	}
	if got := FormatCPUs([]int{9, 3, 1, 2, 3}); got != "1-3,9" {
		t.Errorf("FormatCPUs = %q, want 1-3,9", got)
	}
	for _, bad := range []string{"x", "1-", "3-1", "-1", "1,,2", "8192", "0-99999999999", "1:2"} {
		if got, err := ParseCPUs(bad); err == nil {
			t.Errorf("ParseCPUs(%q) = %v, want an error", bad, got)
		}
	}
}

// TestCPUPolicy checks that an instance has dedicated CPUs only if its flavor permits
// it, and that a policy that the flavor does not permit is refused.
func TestCPUPolicy(t *testing.T) {
	for _, c := range []struct {
		flavor, instance, want CPUPolicy
		refused                bool
	}{
		{"", "", CPUShared, false},
		{"", CPUShared, CPUShared, false},
		{"", CPUDedicated, CPUShared, true},
		{CPUShared, CPUDedicated, CPUShared, true},
		{CPUDedicated, "", CPUDedicated, false},
		{CPUDedicated, CPUDedicated, CPUDedicated, false},
		{CPUDedicated, CPUShared, CPUDedicated, true},
		{CPUOptional, "", CPUShared, false},
		{CPUOptional, CPUDedicated, CPUDedicated, false},
		{CPUOptional, CPUShared, CPUShared, false},
	} {
		s, f := InstanceSpec{CPUPolicy: c.instance}, FlavorSpec{CPUPolicy: c.flavor}
		if got := s.CPUPolicyOf(f); got != c.want {
			t.Errorf("CPUPolicyOf(flavor %q, instance %q) = %s, want %s", c.flavor, c.instance, got, c.want)
		}
		err := s.CheckCPUPolicy(f)
		var e *Error
		if errors.As(err, &e) != c.refused || c.refused && (e.Code != CodeInvalid || e.Field != "spec.cpuPolicy") {
			t.Errorf("CheckCPUPolicy(flavor %q, instance %q) = %v, want refused %t for spec.cpuPolicy", c.flavor, c.instance, err, c.refused)
		}
	}
}
