package backup

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func TestRepository(t *testing.T) {
	s3 := func(endpoint, bucket string) Target {
		return Target{S3: &S3{Endpoint: endpoint, Bucket: bucket, AccessKey: "a", SecretKey: "top secret", Region: "r"}, Password: "p"}
	}
	for want, target := range map[string]Target{
		"/srv/backups":                  {Directory: "/srv/backups", Password: "p"},
		"s3:https://s3.example/backups": s3("https://s3.example", "backups"),
		"s3:http://[::1]:9000/b-1":      s3("http://[::1]:9000/", "b-1"),
	} {
		name, env, err := target.repository()
		if err != nil || name != want {
			t.Errorf("repository name = %q, %v; want %q", name, err, want)
		}
		if strings.Contains(name, "secret") || target.S3 != nil && !slices.Contains(env, "AWS_SECRET_ACCESS_KEY=top secret") {
			t.Errorf("repository %s with environment %q, want the secrets in the environment only", name, env)
		}
	}
	for field, targets := range map[string][]Target{
		"spec.password": {{Directory: "/a"}, {Directory: "/a", Password: "a\nb"}},
		"spec":          {{Password: "p"}, {Directory: "/a", S3: &S3{}, Password: "p"}},
		"spec.directory": {{Directory: "a", Password: "p"}, {Directory: "/a/../b", Password: "p"}, {Directory: "rclone:x", Password: "p"},
			{Directory: "sftp:host:/x", Password: "p"}},
		"spec.s3.endpoint": {s3("s3.example", "bucket"), s3("ftp://a", "bucket"), s3("https://u:p@a", "bucket"), s3("https://a/path", "bucket"), s3("https://a?x", "bucket")},
		"spec.s3.bucket":   {s3("https://a", ""), s3("https://a", "../x"), s3("https://a", "a/b"), s3("https://a", "Upper")},
	} {
		for _, target := range targets {
			_, _, err := target.repository()
			var said *api.Error
			if !errors.As(err, &said) || said.Code != api.CodeInvalid || said.Field != field {
				t.Errorf("repository of %+v = %v, want invalid at %s", target, err, field)
			}
		}
	}
	bad := s3("https://a", "bucket")
	bad.S3.SecretKey = "a\nLD_PRELOAD=x"
	if _, _, err := bad.repository(); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("repository with a secret of two lines = %v, want invalid", err)
	}
}

func TestExplain(t *testing.T) {
	failed := errors.New("exit status 1")
	for says, code := range map[string]api.Code{
		"Fatal: wrong password or no key found":                                                                   api.CodeForbidden,
		"Fatal: unable to create lock in backend: repository is already locked exclusively by PID 5 on h":         api.CodeInUse,
		"Save(<data/1>) returned error, retrying after 1s: write /b/data: no space left on device":                api.CodeDiskFull,
		"Load(<data/f00>) ...: ciphertext verification failed":                                                    api.CodeState,
		"Fatal: unable to open config file: Stat: The Access Key Id you provided does not exist":                  api.CodeForbidden,
		"Fatal: unable to open config file: stat /b/config: no such file\nIs there a repository at the following": api.CodeUnavailable,
		"Fatal: unable to open config file: Stat: Get \"http://x/\": dial tcp: connect: connection refused":       api.CodeUnavailable,
		"Warning: at least one source file could not be read":                                                     api.CodeUnavailable,
		"something that nobody has seen":                                                                          api.CodeInternal,
	} {
		err := explain(says, failed)
		if api.CodeOf(err) != code || !errors.Is(err, failed) {
			t.Errorf("explain(%q) = %v, want code %s and the cause in the chain", says, err, code)
		}
		if !strings.Contains(err.Error(), says) {
			t.Errorf("explain = %v, want %q in its text for the log", err, says)
		}
	}
	if explain("warning", nil) != nil {
		t.Error("explain without an error = an error, want nil")
	}
}

type memory struct {
	bytes  []byte
	writes int
}

func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	m.writes++
	return copy(m.bytes[at:], p), nil
}

func TestSparse(t *testing.T) {
	content := make([]byte, 5*holeBytes+100)
	content[2*holeBytes+7], content[len(content)-1] = 1, 2
	for _, dense := range []bool{false, true} {
		m := &memory{bytes: make([]byte, len(content))}
		s := &sparse{f: m, size: int64(len(content)), dense: dense}
		for rest := content; len(rest) > 0; {
			n := min(len(rest), 50_001)
			if got, err := s.Write(rest[:n]); err != nil || got != n {
				t.Fatalf("Write = %d, %v, want %d", got, err, n)
			}
			rest = rest[n:]
		}
		if !bytes.Equal(m.bytes, content) || s.at != s.size {
			t.Errorf("dense %v: the written content differs, or %d bytes were written, want %d", dense, s.at, s.size)
		}
		if !dense && m.writes > 3 {
			t.Errorf("%d writes, want at most 3: zeros must be skipped", m.writes)
		}
		if _, err := s.Write([]byte{0}); err == nil {
			t.Error("Write beyond the size = nil, want an error")
		}
	}
}
