"""Dohle, as `./dev build` makes it."""
import os

from servers.server import ROOT, SETTING, Server


class Dohle(Server):
    name = 'Dohle'
    program = os.path.join(ROOT, 'build', 'release', 'dohle')

    def command(self):
        return [self.program, 'start', '--data', self.data(), '--port', str(self.port), '--set', SETTING]
