package api

import (
	"errors"
	"strings"
	"testing"
)

func TestValidateUpgrade(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	good := func() UpgradeSpec {
		return UpgradeSpec{Version: "1.3.0+5.gabcdef", Packages: []UpgradePackage{{Name: "basalt", SizeBytes: 1, Sha256: sum}, {Name: "basalt-guest-tools", SizeBytes: MaxUpgradePackageBytes, Sha256: sum}}}
	}
	if err := ValidateUpgrade(UpgradeName, good()); err != nil {
		t.Fatal(err)
	}
	if err := ValidateUpgrade(UpgradeName, UpgradeSpec{Version: "0~20260101.abc"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field  string
		change func(*UpgradeSpec)
	}{
		{"spec.version", func(s *UpgradeSpec) { s.Version = "" }},
		{"spec.version", func(s *UpgradeSpec) { s.Version = "--root=/tmp" }},
		{"spec.version", func(s *UpgradeSpec) { s.Version = "1 2" }},
		{"spec.version", func(s *UpgradeSpec) { s.Version = strings.Repeat("1", 129) }},
		{"spec.packages", func(s *UpgradeSpec) { s.Packages = make([]UpgradePackage, 17) }},
		{"spec.packages.name", func(s *UpgradeSpec) { s.Packages[0].Name = "../basalt" }},
		{"spec.packages.name", func(s *UpgradeSpec) { s.Packages[1].Name = "basalt" }},
		{"spec.packages.sizeBytes", func(s *UpgradeSpec) { s.Packages[0].SizeBytes = 0 }},
		{"spec.packages.sizeBytes", func(s *UpgradeSpec) { s.Packages[0].SizeBytes = MaxUpgradePackageBytes + 1 }},
		{"spec.packages.sha256", func(s *UpgradeSpec) { s.Packages[0].Sha256 = strings.ToUpper(sum) }},
		{"spec.packages.sha256", func(s *UpgradeSpec) { s.Packages[0].Sha256 = "../../etc/passwd" }},
		{"spec.attempt", func(s *UpgradeSpec) { s.Attempt = 1 }},
	} {
		s := good()
		c.change(&s)
		var e *Error
		if err := ValidateUpgrade(UpgradeName, s); !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("ValidateUpgrade(%+v) = %v, want an error at %s", s, err, c.field)
		}
	}
	var e *Error
	if err := ValidateUpgrade("mine", good()); !errors.As(err, &e) || e.Field != "meta.name" {
		t.Errorf("ValidateUpgrade named mine = %v, want an error at meta.name", err)
	}
}

func TestChangeUpgrade(t *testing.T) {
	old := UpgradeSpec{Version: "2", Attempt: 3, Packages: []UpgradePackage{{Name: "basalt"}}}
	next := old
	next.Paused, next.Attempt = true, 4
	if err := ChangeUpgrade(old, next); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*UpgradeSpec){
		"spec.version":  func(s *UpgradeSpec) { s.Version = "3" },
		"spec.packages": func(s *UpgradeSpec) { s.Packages = nil },
		"spec.attempt":  func(s *UpgradeSpec) { s.Attempt = 2 },
	} {
		s := old
		change(&s)
		var e *Error
		if err := ChangeUpgrade(old, s); !errors.As(err, &e) || e.Field != field {
			t.Errorf("ChangeUpgrade of %s = %v, want an error there", field, err)
		}
	}
}
