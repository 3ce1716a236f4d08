// Locks a file with proper-lockfile until standard input ends, and says what happens, a JSON object a line. Arguments:
// "once" or "again", for a lock that is refused; the file; the options of proper-lockfile, one set or more.
const lockfile = require("proper-lockfile");
const [how, file, ...options] = process.argv.slice(2);
const say = (event, more) => console.log(JSON.stringify({ event, ...more }));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const held = [];
let tries = 0;

async function lock(option) {
	const { stale, realpath } = option;
	const onCompromised = (e) => say("compromised", { code: e.code, stale, realpath });
	for (;;) {
		try {
			held.push(await lockfile.lock(file, { ...option, onCompromised }));
			return say("held", { stale, realpath });
		} catch (e) {
			tries++;
			if (how === "once" || e.code !== "ELOCKED") {
				return say("refused", { code: e.code, stale, realpath });
			}
		}
		await sleep(200);
	}
}

async function end() {
	for (const release of held) {
		await release().catch((e) => say("not-released", { code: e.code }));
	}
	say("ended", { tries });
	process.exit(0);
}

process.stdin.resume().on("end", end);
for (const option of options) {
	lock(JSON.parse(option));
}
