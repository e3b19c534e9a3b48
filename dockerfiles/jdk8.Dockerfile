# Rendered from the image recipe. `testevo-sandbox images export --context DIRECTORY` writes this file
# next to the layers that it adds.
FROM scratch
ADD layers/base.tar.gz /
ADD layers/jdk.tar.gz /
ADD layers/tools.tar.gz /
ADD layers/maven-cache.tar.gz /
ENV \
    HOME=/work/home \
    JAVA_HOME=/usr/lib/jvm/java-8-openjdk-amd64 \
    LANG=en_US.UTF-8 \
    MAVEN_HOME=/opt/maven \
    PATH=/opt/maven/bin:/usr/lib/jvm/java-8-openjdk-amd64/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    TZ=UTC
USER 1000:1000
WORKDIR /work
