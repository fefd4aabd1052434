package install

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine"
)

// Pick returns the disk that the answers name and allow to be erased, or the two that
// are to mirror each other.
func Pick(disks []machine.Disk, a answers.Answers) (picked []machine.Disk, err error) {
	switch {
	case a.Mirror == nil:
		picked, err = fitting(disks, a.Disk, "disk", 1)
	case *a.Mirror == a.Disk:
		picked, err = fitting(disks, a.Disk, "disk", 2)
	default:
		if picked, err = fitting(disks, a.Disk, "disk", 1); err != nil {
			return nil, err
		}
		var second []machine.Disk
		second, err = fitting(disks, *a.Mirror, "mirror", 1, picked[0].Path)
		picked = append(picked, second...)
	}
	if err != nil {
		return nil, err
	}
	smallest := picked[0].SizeBytes
	for i, d := range picked {
		if err := allowed(d, a, []string{"disk", "mirror"}[i]); err != nil {
			return nil, err
		}
		if len(picked) == 2 && d.Removable {
			return nil, api.Errorf(api.CodeInvalid, "%s is a removable disk (%s), which cannot mirror another", d.Path, d.Transport).
				At([]string{"disk", "mirror"}[i]).WithHint("choose a disk that is built in, or remove mirror")
		}
		smallest = min(smallest, d.SizeBytes)
	}
	return picked, checkLayout(smallest, a.FileSystems, len(picked) == 2)
}

// fitting returns the disks that fit the rule, except one, which must be as many as are
// wanted.
func fitting(disks []machine.Disk, rule answers.Disk, field string, want int, except ...string) ([]machine.Disk, error) {
	named := rule.Serial != "" || rule.ByID != ""
	var found []machine.Disk
	for _, d := range disks {
		if !matches(d, rule) || !named && d.Refusal != nil {
			continue
		}
		if !slices.Contains(except, d.Path) {
			found = append(found, d)
		} else if named {
			return nil, api.Errorf(api.CodeInvalid, "%s is the disk that disk names: a disk cannot mirror itself", d.Path).At(field).
				WithHint("name the other disk, or remove mirror: %s", overview(disks))
		}
	}
	switch {
	case len(found) == 0:
		return nil, api.Errorf(api.CodeNotFound, "no disk here fits the rule in %s", field).At(field).WithHint("this machine has: %s", overview(disks))
	case len(found) < want:
		return nil, api.Errorf(api.CodeNotFound, "only %s fits the rule in disk and mirror, want two disks", found[0].Path).At("mirror").WithHint("this machine has: %s", overview(disks))
	case len(found) > want:
		return nil, api.Errorf(api.CodeConflict, "%d disks fit the rule in %s", len(found), field).At(field).
			WithHint("name one by its serial: %s", overview(found))
	}
	return found, nil
}

// allowed returns why the disk must not be erased.
func allowed(d machine.Disk, a answers.Answers, field string) error {
	switch {
	case d.Refusal != nil:
		return api.Errorf(api.CodeInUse, "%s cannot be chosen: %s", d.Path, d.Refusal.Reason).At(field).WithHint("%s", d.Refusal.Hint)
	case !a.MayErase(d.Serial):
		return api.Errorf(api.CodeInvalid, "erase allows %q, but the disk is %s", strings.Join(a.Erase, ", "), overview([]machine.Disk{d})).At("erase").
			WithHint("write its serial if that is the disk to erase")
	case d.Node && !a.Reinstall:
		return api.Errorf(api.CodeExists, "a finished Basalt node is on %s already", d.Path).At(field).
			WithHint("remove the medium and start the computer from its disk; or write reinstall: true to erase that node with its data")
	}
	return nil
}

func matches(d machine.Disk, rule answers.Disk) bool {
	switch {
	case rule.Only:
		return true
	case rule.Serial != "":
		return d.Serial == rule.Serial
	case rule.ByID != "":
		return slices.Contains(d.ByID, rule.ByID)
	}
	return d.SizeBytes >= rule.Size.Min && (rule.Size.Max == 0 || d.SizeBytes <= rule.Size.Max)
}

// overview lists disks in one line.
func overview(disks []machine.Disk) string {
	if len(disks) == 0 {
		return "no disk that its kernel knows"
	}
	var all []string
	for _, d := range disks {
		s := d.Path + " (" + machine.Bytes(d.SizeBytes)
		if d.Serial != "" {
			s += ", serial " + d.Serial
		}
		if d.Refusal != nil {
			s += "; not usable: " + d.Refusal.Reason
		}
		all = append(all, s+")")
	}
	return strings.Join(all, ", ")
}

// PickNIC returns the network card that a path names.
func PickNIC(nics []machine.NIC, p answers.Path, field string) (machine.NIC, error) {
	var all []string
	for _, n := range nics {
		if n.Name == p.Interface || p.MAC != "" && n.MAC == p.MAC {
			return n, nil
		}
		all = append(all, n.Name+" ("+n.MAC+", "+n.Speed()+")")
	}
	return machine.NIC{}, api.Errorf(api.CodeNotFound, "there is no card %s%s", p.Interface, p.MAC).At(field).
		WithHint("this machine has: %s", strings.Join(all, ", "))
}
