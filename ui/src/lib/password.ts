// A password for the console, by cloud-init.

// Without letters that look like others.
const letters = 'abcdefghijkmnpqrstuvwxyz23456789';
const length = 16; // of 32 letters: 80 bits

/** generated is a new password that can be typed. */
export function generated(): string {
  const random = crypto.getRandomValues(new Uint8Array(length));
  return Array.from(random, (b) => letters[b % letters.length])
    .join('')
    .replace(/(.{4})(?=.)/g, '$1-');
}

const header = '#cloud-config';

/** takesPassword says whether a password can be added to user data: to none, or
 * to a cloud-config that sets none itself. */
export const takesPassword = (userData: string): boolean =>
  userData.trim() === '' || (userData.startsWith(header) && !/^(password|chpasswd)\s*:/m.test(userData));

/** withPassword is user data that lets the image's own user in with a password,
 * on the console and not by SSH. */
export function withPassword(userData: string, password: string): string {
  if (password === '' || !takesPassword(userData)) return userData;
  const rest = userData.trim() === '' ? header : userData.trimEnd();
  const ssh = /^ssh_pwauth\s*:/m.test(rest) ? '' : 'ssh_pwauth: false\n';
  // JSON's strings are YAML's.
  return `${rest}\npassword: ${JSON.stringify(password)}\nchpasswd: {expire: false}\n${ssh}`;
}
