package backup

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// Target is where backups are stored. Exactly one of Directory and S3 is set.
type Target struct {
	Directory string // absolute, on this node
	S3        *S3
	Password  string // of the repository
}

// S3 is a bucket in an S3-compatible store.
type S3 struct {
	Endpoint             string // https://HOST[:PORT], or http:// where the network is trusted
	Bucket               string
	Region               string // empty: the store's default
	AccessKey, SecretKey string
}

var bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// repository returns restic's name of the target, without secrets, and the
// environment variables with the secrets.
func (t Target) repository() (name string, env []string, err error) {
	switch {
	case t.Password == "" || strings.ContainsAny(t.Password, "\x00\n"):
		return "", nil, api.Errorf(api.CodeInvalid, "a backup target needs a password of one line").At("spec.password")
	case (t.Directory == "") == (t.S3 == nil):
		return "", nil, api.Errorf(api.CodeInvalid, "a backup target needs either a directory or an S3 bucket").At("spec")
	case t.S3 == nil:
		if !filepath.IsAbs(t.Directory) || filepath.Clean(t.Directory) != t.Directory || strings.ContainsRune(t.Directory, 0) {
			return "", nil, api.Errorf(api.CodeInvalid, "directory %q is not an absolute path", t.Directory).At("spec.directory")
		}
		return t.Directory, nil, nil
	}
	u, err := url.Parse(t.S3.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "", nil, api.Errorf(api.CodeInvalid, "endpoint is not a valid address of an S3 service").WithHint("e.g. https://s3.example.com").At("spec.s3.endpoint")
	}
	if !bucketForm.MatchString(t.S3.Bucket) {
		return "", nil, api.Errorf(api.CodeInvalid, "%q is not a valid bucket name", t.S3.Bucket).At("spec.s3.bucket")
	}
	env = []string{"AWS_ACCESS_KEY_ID=" + t.S3.AccessKey, "AWS_SECRET_ACCESS_KEY=" + t.S3.SecretKey}
	if t.S3.Region != "" {
		env = append(env, "AWS_DEFAULT_REGION="+t.S3.Region)
	}
	for _, e := range env {
		if strings.ContainsAny(e, "\x00\n") {
			return "", nil, api.Errorf(api.CodeInvalid, "keys and region must not contain line breaks").At("spec.s3")
		}
	}
	return "s3:" + u.Scheme + "://" + u.Host + "/" + t.S3.Bucket, env, nil
}
