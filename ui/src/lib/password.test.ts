import { expect, test } from 'vitest';
import { generated, takesPassword, withPassword } from './password';

test('a generated password is typed easily, and new each time', () => {
  expect(generated()).toMatch(/^([a-z2-9]{4}-){3}[a-z2-9]{4}$/);
  expect(generated()).not.toBe(generated());
});

test('a password joins a cloud-config, or makes one', () => {
  expect(withPassword('', 'a"b\n')).toBe(
    '#cloud-config\npassword: "a\\"b\\n"\nchpasswd: {expire: false}\nssh_pwauth: false\n',
  );
  expect(withPassword('#cloud-config\nruncmd: [ls]\n\n', 'x')).toBe(
    '#cloud-config\nruncmd: [ls]\npassword: "x"\nchpasswd: {expire: false}\nssh_pwauth: false\n',
  );
  expect(withPassword('#cloud-config\nssh_pwauth: true', 'x')).not.toContain('false\nssh_pwauth');
  expect(withPassword('#cloud-config\n', '')).toBe('#cloud-config\n');
});

test('what sets its own password, or is no cloud-config, stays', () => {
  for (const own of [
    '#cloud-config\npassword: mine\n',
    '#cloud-config\nchpasswd:\n  expire: true\n',
    '#!/bin/sh\necho hi\n',
  ]) {
    expect(takesPassword(own)).toBe(false);
    expect(withPassword(own, 'x')).toBe(own);
  }
});
