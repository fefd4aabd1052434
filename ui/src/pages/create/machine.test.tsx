// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { afterEach, expect, test } from 'vitest';
import { machineSpec, usualMachine } from '../../lib/machine';
import { MachineFields } from './machine';

afterEach(cleanup);

function Form({ os }: { os?: string }) {
  const [machine, set] = useState(usualMachine);
  return (
    <>
      <MachineFields machine={machine} set={set} flavor={undefined} vgpu={false} os={os} />
      <output>{JSON.stringify(machineSpec(machine, false))}</output>
    </>
  );
}

const options = (label: string) =>
  [...screen.getByLabelText<HTMLSelectElement>(label).options].map((option) => option.text);

test('an image for Windows decides the machine, unless something else is chosen', async () => {
  render(<Form os="windows" />);
  expect(options('Operating system')).toEqual(['As the image: Windows', 'Linux', 'Windows']);
  expect(options('Firmware')).toEqual(['As the image: UEFI, Secure Boot, TPM 2.0', 'BIOS', 'UEFI']);
  expect(screen.getByRole('status')).toHaveTextContent('{}');
  await userEvent.selectOptions(screen.getByLabelText('Firmware'), 'BIOS');
  expect(screen.getByRole('status')).toHaveTextContent('{"firmware":"bios"}');
  await userEvent.selectOptions(screen.getByLabelText('Operating system'), 'Linux');
  expect(options('Firmware')).toEqual(['BIOS', 'UEFI']);
});

test.each([undefined, 'linux', 'other'])('an image with %s decides nothing', (os) => {
  render(<Form os={os} />);
  expect(options('Operating system')).toEqual(['Linux', 'Windows']);
  expect(options('Firmware')).toEqual(['BIOS', 'UEFI']);
});
