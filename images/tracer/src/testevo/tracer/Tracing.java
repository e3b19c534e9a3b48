package testevo.tracer;

import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.util.HashSet;
import java.util.Set;
import org.jacoco.cli.internal.asm.ClassReader;
import org.jacoco.cli.internal.asm.ClassVisitor;
import org.jacoco.cli.internal.asm.ClassWriter;
import org.jacoco.cli.internal.asm.Label;
import org.jacoco.cli.internal.asm.MethodVisitor;
import org.jacoco.cli.internal.asm.Opcodes;

/** Puts a call of {@link Probe#enter} before the first instruction of every method of the wanted source files. */
final class Tracing implements ClassFileTransformer {
    private static final int API = Opcodes.ASM9;

    private final Set<String> sources;
    private final Set<String> packages = new HashSet<String>();
    private final Entries entries;

    Tracing(Set<String> sources, Entries entries) {
        this.sources = sources;
        this.entries = entries;
        for (String source : sources) {
            packages.add(packageOf(source));
        }
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        // Classes of the JVM itself, and classes without a name of their own.
        if (loader == null || name == null || redefined != null || !packages.contains(packageOf(name))) {
            return null;
        }
        try {
            ClassReader reader = new ClassReader(bytes);
            ClassWriter writer = new ClassWriter(reader, 0);
            TracedClass traced = new TracedClass(writer, packageOf(name));
            reader.accept(traced, 0);
            return traced.isWanted ? writer.toByteArray() : null;
        } catch (Throwable unknown) {
            // A class file of a later release, or one that is no sound class file: it stays as it is.
            entries.addUntraced(name);
            return null;
        }
    }

    private static String packageOf(String name) {
        return name.substring(0, name.lastIndexOf('/') + 1);
    }

    /** A class on its way through; where its source is not wanted nothing is changed. */
    private final class TracedClass extends ClassVisitor {
        private final String inPackage;
        private String source;
        private boolean isWanted;

        TracedClass(ClassVisitor next, String inPackage) {
            super(API, next);
            this.inPackage = inPackage;
        }

        @Override
        public void visitSource(String file, String debug) {
            source = inPackage + file;
            isWanted = sources.contains(source);
            super.visitSource(file, debug);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
            MethodVisitor next = super.visitMethod(access, name, descriptor, signature, thrown);
            return isWanted && next != null ? new TracedMethod(next, source, name) : next;
        }
    }

    /** A method on its way through. */
    private final class TracedMethod extends MethodVisitor {
        private final Entries.Entry entry;

        TracedMethod(MethodVisitor next, String source, String name) {
            super(API, next);
            entry = new Entries.Entry(source, name);
        }

        @Override
        public void visitCode() {
            super.visitCode();
            int number = entries.add(entry);
            if (number >= 0) {
                visitLdcInsn(number);
                visitMethodInsn(Opcodes.INVOKESTATIC, "testevo/tracer/Probe", "enter", "(I)V", false);
            }
        }

        @Override
        public void visitLineNumber(int line, Label start) {
            entry.lines.add(line);
            super.visitLineNumber(line, start);
        }

        @Override
        public void visitMaxs(int stack, int locals) {
            // The call needs one slot of the stack, which is empty where it stands.
            super.visitMaxs(Math.max(stack, 1), locals);
        }
    }
}
