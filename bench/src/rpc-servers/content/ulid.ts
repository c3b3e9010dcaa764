// ULIDs (section 16.1): 48 bits of milliseconds and 80 random bits, in 26 characters that sort by time.

import { randomBytes } from "node:crypto";

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const timeCharacters = 10;
const randomByteCount = 10;
const bitsPerCharacter = 5;

export function ulid(
  milliseconds: number = Date.now(),
  random: Uint8Array = randomBytes(randomByteCount),
): string {
  let time = "";
  let rest = milliseconds;
  for (let character = 0; character < timeCharacters; character++) {
    time = alphabet[rest % 32]! + time;
    rest = Math.floor(rest / 32);
  }
  let text = "";
  let bits = 0;
  let bitCount = 0;
  for (const byte of random) {
    bits = (bits << 8) | byte;
    bitCount += 8;
    while (bitCount >= bitsPerCharacter) {
      bitCount -= bitsPerCharacter;
      text += alphabet[(bits >>> bitCount) & 31];
    }
    bits &= (1 << bitCount) - 1;
  }
  return time + text;
}
