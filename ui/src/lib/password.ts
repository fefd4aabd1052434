// A password for the console, set through cloud-init.

// Without characters that are easily confused.
const letters = 'abcdefghijkmnpqrstuvwxyz23456789';
const length = 16; // of 32 letters: 80 bits

/** suffix returns a few random letters that tell names apart. */
export const suffix = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(4)), (b) => letters[b % letters.length]).join('');

/** generated returns a new password that is easy to type. */
export function generated(): string {
  const random = crypto.getRandomValues(new Uint8Array(length));
  return Array.from(random, (b) => letters[b % letters.length])
    .join('')
    .replace(/(.{4})(?=.)/g, '$1-');
}

const header = '#cloud-config';

/** takesPassword reports whether a password can be added to user data: to none, or to a cloud-config that sets none
 * itself. */
export const takesPassword = (userData: string): boolean =>
  userData.trim() === '' || (userData.startsWith(header) && !/^(password|chpasswd)\s*:/m.test(userData));

/** withPassword returns user data that lets the image's default user sign in with a password on the console, but not
 * by SSH. */
export function withPassword(userData: string, password: string): string {
  if (password === '' || !takesPassword(userData)) return userData;
  const rest = userData.trim() === '' ? header : userData.trimEnd();
  const ssh = /^ssh_pwauth\s*:/m.test(rest) ? '' : 'ssh_pwauth: false\n';
  // JSON's strings are valid YAML.
  return `${rest}\npassword: ${JSON.stringify(password)}\nchpasswd: {expire: false}\n${ssh}`;
}
